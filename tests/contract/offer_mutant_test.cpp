// Does check refuse plans that are wrong only because blocks are read in their senders' buffers? Right plans, spoilt
// where that matters, must be refused wherever running them on numbers, with many delays, gives a wrong result or none.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>

#include "algorithms/algorithm.h"
#include "analysis/proof/check.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "plan/outlasting.h"
#include "plan/verify.h"
#include "support/environment.h"
#include "support/mutant_trials.h"
#include "support/mutants.h"
#include "support/offer_mutants.h"
#include "support/random_schedule.h"

namespace tutti {
namespace {

using namespace tutti::testing;

constexpr int batches = 6;
constexpr int mutants_of_original = 8;
constexpr int trials_max = 80;

/// A right schedule, and right plans of it for ranks that are spread over hosts.
struct Original {
  std::string name;
  Schedule schedule;
  std::vector<Plan> plans;
  std::vector<CheckCase> cases;
  TrialLimits limits;
};

/// Recursive doubling of four ranks in scratch. Fused, the first pass copies a contribution to scratch and into a
/// message: the input holds what is sent, but not where sums are pre-multiplied; scratch does, and changes at once.
Schedule doubling_in_scratch() {
  Schedule schedule({.collective = Collective::all_reduce, .ranks = 4}, 1);
  constexpr Ref scratch{Buffer::scratch, 0};
  for (Rank rank = 0; rank < 4; ++rank) schedule.copy(rank, {Buffer::input, 0}, rank, scratch);
  for (const int bit : {1, 2}) {
    schedule.next_step();
    for (Rank rank = 0; rank < 4; ++rank) {
      schedule.reduce(rank & ~bit, scratch, rank, scratch, 0);
      schedule.reduce(rank | bit, scratch, rank, scratch, 1);
    }
  }
  schedule.next_step();
  for (Rank rank = 0; rank < 4; ++rank) schedule.copy(rank, scratch, rank, {Buffer::output, 0});
  return schedule;
}

std::optional<Schedule> random_schedule(Random& random, std::string& what) {
  if (random.chance(8)) {
    what = "doubling in scratch,";
    return doubling_in_scratch();
  }
  if (random.chance(50)) {
    what = "a random schedule";
    const Collective collective = random.chance(50) ? Collective::all_gather : Collective::all_reduce;
    return RandomSchedule(collective, random).make();
  }
  const auto all = algorithms();
  const Algorithm& algorithm = all[static_cast<std::size_t>(random.below(static_cast<int>(all.size())))];
  Shape shape{.collective = static_cast<Collective>(random.below(collective_count)), .ranks = random.between(2, 9)};
  if (rooted(shape.collective)) shape.root = random.below(shape.ranks);
  what = algorithm.name;
  return algorithm.supports(shape) ? std::optional(algorithm.build(shape)) : std::nullopt;
}

/// All ranks on one host, or dealt to two or three, at random, so that hosts differ in size.
std::vector<int> random_hosts(int ranks, Random& random) {
  std::vector<int> hosts(static_cast<std::size_t>(ranks));
  const int count = random.between(1, 3);
  for (int& host : hosts) host = random.below(count);
  return hosts;
}

Original random_original(Random& random) {
  for (;;) {
    std::string what;
    auto schedule = random_schedule(random, what);
    if (!schedule || !verify(*schedule) || !lowers_to(*schedule, Access::slots)) continue;
    const int ranks = schedule->ranks(), fused = random.below(3);
    std::vector<Plan> plans = lower_all(*schedule, Access::slots);
    bool offers = false;
    for (Plan& plan : plans) {
      if (fused > 0) plan = fuse(std::move(plan), fused);
      plan.outlasts = outlasting(plan);
      offers = offers || std::ranges::find(plan.outlasts, true) != plan.outlasts.end();
    }
    if (!offers) continue;
    TrialLimits limits{.slots_min = std::max(fused, 1), .hosts = random_hosts(ranks, random)};
    std::vector<CheckCase> cases = check_cases(schedule->collective(), ranks, Access::slots);
    std::erase_if(cases, [&](const CheckCase& how) { return how.slots < limits.slots_min; });
    for (CheckCase& how : cases) how.hosts = limits.hosts;
    return {.name = what + " " + std::string(name(schedule->collective())) + ", " + std::to_string(ranks) +
                    " ranks, fused " + std::to_string(fused) + ", hosts " + ::testing::PrintToString(limits.hosts),
            .schedule = *std::move(schedule),
            .plans = std::move(plans),
            .cases = std::move(cases),
            .limits = std::move(limits)};
  }
}

std::vector<CheckCase> apart(std::vector<CheckCase> cases) {
  for (CheckCase& how : cases) how.hosts.clear();
  return cases;
}

constexpr const char* any_change = "any change";
/// Plans that are right while nothing is offered: then outlasting() says what may be. It may spoil nothing.
constexpr const char* other_plans = "other plans";

/// A change of the offers or any other; returns its kind.
std::string spoil(const Original& original, Random& random, std::vector<Plan>& plans, std::string& details) {
  for (;;) {
    const int kind = random.below(offer_change_count + 2);
    if (kind < offer_change_count) {
      const auto change = static_cast<OfferChange>(kind);
      plans = spoil_offer(original.plans, original.limits.hosts, change, random);
      if (!plans.empty()) return name(change);
      continue;
    }
    PlanMutant mutant = mutate(original.plans, random);
    plans = std::move(mutant.plans);
    details = mutant.what;
    if (kind == offer_change_count) return any_change;
    if (!check_all(original.schedule, plans, apart(original.cases))) return any_change;
    for (Plan& plan : plans) plan.outlasts = outlasting(plan);
    return other_plans;
  }
}

/// What a batch found, in all and by kind of change.
struct Findings {
  Tally all;
  std::map<std::string, Tally> by_kind;
  std::map<std::string, int> by_offers;  ///< of the wrong ones: proven while nothing is offered

  bool all_kinds_refused() {
    bool all_refused = by_kind[any_change].refused > 0;
    for (int kind = 0; kind < offer_change_count; ++kind)
      all_refused = all_refused && by_kind[name(static_cast<OfferChange>(kind))].refused > 0;
    return all_refused;
  }
};

void try_mutant(const Original& original, Random& random, Findings& found) {
  std::vector<Plan> plans;
  std::string details;
  const std::string kind = spoil(original, random, plans, details);
  const InitResult verdict =
      try_out(original.schedule, Yardstick::schedule, plans, original.limits, trials_max, random.next());
  const bool wrong = verdict.outcome != Outcome::right;
  const bool refused = !check_all(original.schedule, plans, original.cases);
  if (wrong && check_all(original.schedule, plans, apart(original.cases))) ++found.by_offers[kind];
  for (Tally* tally : {&found.all, &found.by_kind[kind]})
    tally->add(wrong, refused, original.name + ": " + kind + " " + details + ": " + verdict.what);
}

class OfferMutants : public ::testing::TestWithParam<int> {};

TEST_P(OfferMutants, AreRefused) {
  SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(test_seed()));
  Random random(test_seed() * batches + static_cast<std::uint64_t>(GetParam()));
  Findings found;
  const int mutants_of_batch = environment("TUTTI_TEST_MUTANTS", 1200);
  // Some kinds have a place in few plans.
  const auto enough = [&] {
    return found.all.mutants >= mutants_of_batch &&
           (found.all_kinds_refused() || found.all.mutants >= mutants_of_batch + 6000);
  };
  while (!enough()) {
    const Original original = random_original(random);
    const auto checked = check_all(original.schedule, original.plans, original.cases);
    EXPECT_TRUE(checked) << original.name << ": " << checked.error().text();
    const InitResult right =
        try_out(original.schedule, Yardstick::schedule, original.plans, original.limits, 10, random.next());
    EXPECT_EQ(right.outcome, Outcome::right) << original.name << ": " << right.what;
    for (int i = 0; i < mutants_of_original; ++i) try_mutant(original, random, found);
  }
  for (const auto& [kind, tally] : found.by_kind)
    std::cout << kind << ": " << tally.mutants << " mutants, " << tally.counted << " of them wrong when run, "
              << tally.refused << " of these refused; " << found.by_offers[kind]
              << " wrong for what they offer alone\n";
  for (const std::string& survivor : found.all.survivors) std::cout << "survivor: " << survivor << "\n";
  EXPECT_EQ(found.all.refused, found.all.counted);
  for (int kind = 0; kind < offer_change_count; ++kind) {
    const std::string change = name(static_cast<OfferChange>(kind));
    EXPECT_GT(found.by_kind[change].refused, 0) << change << ": too harmless to show anything";
  }
  EXPECT_GT(found.by_kind[any_change].refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Batches, OfferMutants, ::testing::Range(0, batches));

}  // namespace
}  // namespace tutti
