// How many channels must be resident at once: with so many, channels that come in any order never lock each other out;
// with one fewer some order does.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "algorithms/algorithm.h"
#include "analysis/proof/check.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "support/environment.h"
#include "support/mutants.h"
#include "support/reference_executor.h"

namespace tutti {
namespace {

using namespace tutti::testing;

struct Original {
  std::string name;
  Schedule schedule;
  std::vector<Plan> plans;
  CheckCase how;
};

Original random_original(Random& random) {
  for (;;) {
    const auto all = algorithms();
    const Algorithm& algorithm = all[static_cast<std::size_t>(random.below(static_cast<int>(all.size())))];
    Shape shape{.collective = static_cast<Collective>(random.below(collective_count)), .ranks = random.between(2, 6)};
    if (rooted(shape.collective)) shape.root = random.below(shape.ranks);
    const auto access = static_cast<Access>(random.below(4));
    if (!serves(algorithm, shape, access)) continue;
    Schedule schedule = algorithm.build(shape);
    std::vector<Plan> plans = lower_all(schedule, access);
    CheckCase how{.slots = 1, .channels = 1, .tiles = 1, .calls = 1};
    if (access == Access::slots) {
      how.slots = random.below(3);
      how.channels = random.between(1, 2);
      how.tiles = random.between(how.channels, 4);
    }
    if (how.slots > 0 && random.chance(50))
      for (Plan& plan : plans) plan = fuse(std::move(plan), how.slots);
    return {.name = std::string(algorithm.name) + " " + std::string(name(shape.collective)) + ", " +
                    std::to_string(shape.ranks) + " ranks, " + std::string(name(access)) + ", " +
                    std::to_string(how.slots) + " slots, " + std::to_string(how.channels) + " channels, " +
                    std::to_string(how.tiles) + " tiles",
            .schedule = std::move(schedule),
            .plans = std::move(plans),
            .how = how};
  }
}

/// The first trial that is not right, or the last.
InitResult try_out(const Original& original, const std::vector<Plan>& plans, int resident, int trials,
                   std::uint64_t seed) {
  const Arithmetic arithmetic(Yardstick::schedule, reduces(original.schedule.collective()), seed);
  Expected expected(original.schedule, Yardstick::schedule);
  InitResult verdict;
  for (int i = 0; i < trials && verdict.outcome == Outcome::right; ++i) {
    const Trial trial{.seed = seed + static_cast<std::uint64_t>(i),
                      .slots = original.how.slots,
                      .channels = original.how.channels,
                      .tiles = original.how.tiles,
                      .calls = 1,
                      .resident = resident};
    verdict = ReferenceExecutor(plans, expected, arithmetic, trial).run();
  }
  return verdict;
}

TEST(Residency, IsEnoughAndNotTooMuch) {
  SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(test_seed()));
  Random random(test_seed());
  int below_all = 0;
  for (int left = environment("TUTTI_TEST_RESIDENT", 300); left > 0; --left) {
    const Original original = random_original(random);
    const auto found = residency(original.schedule, original.plans, original.how);
    ASSERT_TRUE(found) << original.name << ": " << found.error().text();
    ASSERT_LE(found->resident, found->channels) << original.name;
    below_all += found->resident < found->channels ? 1 : 0;

    const InitResult enough = try_out(original, original.plans, found->resident, 20, random.next());
    EXPECT_EQ(enough.outcome, Outcome::right)
        << original.name << ", " << found->resident << " resident: " << enough.what;
    if (found->resident == 1) continue;
    const InitResult fewer = try_out(original, original.plans, found->resident - 1, 4000, random.next());
    EXPECT_EQ(fewer.outcome, Outcome::stalled)
        << original.name << ", " << found->resident - 1 << " resident of " << found->channels;
  }
  EXPECT_GT(below_all, 0);
}

/// Whatever plans a mistake leaves right, what is said of these holds too.
TEST(Residency, HoldsForMutantsThatAreRight) {
  SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(test_seed()));
  Random random(test_seed() + 1);
  int right = 0, other = 0;
  for (int left = environment("TUTTI_TEST_RESIDENT", 300); left > 0; --left) {
    const Original original = random_original(random);
    if (std::ranges::all_of(original.plans, [](const Plan& plan) { return plan.actions.empty(); })) continue;
    const auto before = residency(original.schedule, original.plans, original.how);
    for (int i = 0; i < 8; ++i) {
      const PlanMutant mutant = mutate(original.plans, random);
      const auto found = residency(original.schedule, mutant.plans, original.how);
      if (!found) continue;
      ++right;
      other += found->resident != before->resident ? 1 : 0;
      const InitResult verdict = try_out(original, mutant.plans, found->resident, 20, random.next());
      EXPECT_EQ(verdict.outcome, Outcome::right)
          << original.name << ", " << mutant.what << ", " << found->resident << " resident: " << verdict.what;
    }
  }
  std::cout << right << " right mutants, " << other << " of them with another number\n";
  EXPECT_GT(right, 0);
}

}  // namespace
}  // namespace tutti
