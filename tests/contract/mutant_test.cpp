// Do verify and check refuse what is wrong? Right schedules and plans, spoilt at random, must be refused wherever
// running them on numbers, with many delays, gives a wrong result or none.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "algorithms/algorithm.h"
#include "analysis/proof/check.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "plan/verify.h"
#include "support/environment.h"
#include "support/mutant_trials.h"
#include "support/mutants.h"

namespace tutti {
namespace {

using namespace tutti::testing;

constexpr int batches = 12;
constexpr int mutants_of_original = 8;
constexpr int trials_max = 100;

/// A right schedule and right plans of it.
struct Original {
  std::string name;
  Schedule schedule;
  Meaning meaning;
  Access access;
  std::vector<Plan> plans;
  std::vector<CheckCase> cases;
  int slots_min = 0;  ///< fewer would not do for these plans
};

Original random_original(Random& random) {
  for (;;) {
    const auto all = algorithms();
    const Algorithm& algorithm = all[static_cast<std::size_t>(random.below(static_cast<int>(all.size())))];
    Shape shape{.collective = static_cast<Collective>(random.below(collective_count)), .ranks = random.between(2, 9)};
    if (rooted(shape.collective)) shape.root = random.below(shape.ranks);
    const auto access = static_cast<Access>(random.below(4));
    if (!algorithm.supports(shape)) continue;
    Schedule schedule = algorithm.build(shape);
    if (!lowers_to(schedule, access)) continue;

    const int fused = random.below(access == Access::slots ? 3 : 2);
    std::vector<Plan> plans;
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
      plans.push_back(lower(schedule, rank, access));
      if (fused > 0) plans.back() = fuse(std::move(plans.back()), fused);
    }
    auto meaning = verify(schedule);
    EXPECT_TRUE(meaning) << meaning.error().text();
    std::vector<CheckCase> cases = check_cases(shape.collective, shape.ranks, access);
    const int slots_min = fused > 1 ? fused : 0;
    std::erase_if(cases, [&](const CheckCase& how) { return how.slots < slots_min; });
    return {.name = std::string(algorithm.name) + " " + std::string(name(shape.collective)) + ", " +
                    std::to_string(shape.ranks) + " ranks, " + std::string(name(access)) + ", fused " +
                    std::to_string(fused),
            .schedule = std::move(schedule),
            .meaning = *std::move(meaning),
            .access = access,
            .plans = std::move(plans),
            .cases = std::move(cases),
            .slots_min = slots_min};
  }
}

bool in_range(const Schedule& s) {
  const auto has = [&s](Rank rank, Ref ref) {
    if (rank < 0 || rank >= s.ranks()) return false;
    const int groups = ref.buffer == Buffer::input    ? input_groups(s.collective(), s.ranks(), rank, s.root())
                       : ref.buffer == Buffer::output ? output_groups(s.collective(), s.ranks(), rank, s.root())
                                                      : s.scratch_groups();
    return ref.block >= 0 && ref.block < groups * s.parts();
  };
  return std::ranges::all_of(s.transfers(), [&](const Transfer& t) { return has(t.from, t.src) && has(t.to, t.dst); });
}

void try_plan_mutant(const Original& original, Random& random, Tally& tally) {
  const PlanMutant mutant = mutate(original.plans, random);
  const InitResult verdict = try_out(original.schedule, Yardstick::schedule, mutant.plans,
                                     {.slots_min = original.slots_min}, trials_max, random.next());
  const bool refused = !check_all(original.schedule, mutant.plans, original.cases);
  tally.add(verdict.outcome != Outcome::right, refused, original.name + ": " + mutant.what + ": " + verdict.what);
}

/// A schedule is wrong by what it means; only where it is proven there are plans to be tried.
void try_schedule_mutant(const Original& original, Random& random, Tally& tally) {
  const ScheduleMutant mutant = mutate(original.schedule, random);
  const std::string what = original.name + ": schedule: " + mutant.what;
  const auto meaning = verify(mutant.schedule);
  if (!meaning || !in_range(mutant.schedule)) {
    bool wrong = !in_range(mutant.schedule);
    if (!wrong) {
      const bool adds = reduces(mutant.schedule.collective());
      const Arithmetic arithmetic(Yardstick::definition, adds, random.next());
      Expected is(mutant.schedule, Yardstick::schedule);
      Expected should(mutant.schedule, Yardstick::definition);
      is.compute(arithmetic, 0, 1);
      should.compute(arithmetic, 0, 1);
      wrong = !(is == should);
    }
    tally.add(wrong, !meaning, what);
    return;
  }
  if (!lowers_to(mutant.schedule, original.access)) return;
  std::vector<Plan> plans;
  for (Rank rank = 0; rank < mutant.schedule.ranks(); ++rank)
    plans.push_back(lower(mutant.schedule, rank, original.access));
  const auto checked = check_all(mutant.schedule, plans,
                                 check_cases(mutant.schedule.collective(), mutant.schedule.ranks(), original.access));
  EXPECT_TRUE(checked) << what << ": proven, but its plans are not: " << checked.error().text();
  const InitResult verdict = try_out(mutant.schedule, Yardstick::definition, plans, {}, 10, random.next());
  tally.add(verdict.outcome != Outcome::right, !checked, what + ": " + verdict.what);
}

class Mutants : public ::testing::TestWithParam<int> {};

TEST_P(Mutants, AreRefused) {
  SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(test_seed()));
  Random random(test_seed() * batches + static_cast<std::uint64_t>(GetParam()));
  Tally tally;
  const int mutants_of_batch = environment("TUTTI_TEST_MUTANTS", 1200);
  while (tally.mutants < mutants_of_batch) {
    const Original original = random_original(random);
    const auto checked = check_all(original.schedule, original.plans, original.cases);
    EXPECT_TRUE(checked) << original.name << ": " << checked.error().text();
    const InitResult verdict = try_out(original.schedule, Yardstick::schedule, original.plans,
                                       {.slots_min = original.slots_min}, 10, random.next());
    EXPECT_EQ(verdict.outcome, Outcome::right) << original.name << ": " << verdict.what;
    const bool has_actions = std::ranges::any_of(original.plans, [](const Plan& p) { return !p.actions.empty(); });
    for (int i = 0; i < mutants_of_original && has_actions; ++i) {
      if (random.chance(25))
        try_schedule_mutant(original, random, tally);
      else
        try_plan_mutant(original, random, tally);
    }
  }
  std::cout << tally.mutants << " mutants, " << tally.counted << " of them wrong when run, " << tally.refused
            << " of these refused\n";
  for (const std::string& survivor : tally.survivors) std::cout << "survivor: " << survivor << "\n";
  EXPECT_GE(100 * tally.refused, 99 * tally.counted);
  EXPECT_GE(3 * tally.counted, tally.mutants) << "the mutants are too harmless to show anything";
}

INSTANTIATE_TEST_SUITE_P(Batches, Mutants, ::testing::Range(0, batches));

}  // namespace
}  // namespace tutti
