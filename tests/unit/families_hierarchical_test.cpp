// What a hierarchy promises about steps and about bytes inside and across groups; and that it follows the machine.
#include <gtest/gtest.h>

#include <string>

#include "analysis/proof/check.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "plan/verify.h"
#include "support/schedule_counts.h"

namespace tutti {
namespace {

using testing::built;
using testing::log2_up;
using testing::messages;
using testing::messages_per_step;
using testing::supported;
using testing::text;

constexpr Collective collectives[] = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather};

/// Blocks the busiest rank sends to others of its group, and to other groups.
struct Traffic {
  int inside = 0;
  int across = 0;
};

Traffic traffic(const Schedule& schedule, const Level& level) {
  const auto group = [&](Rank rank) { return level[static_cast<std::size_t>(rank)]; };
  std::vector<Traffic> sent(static_cast<std::size_t>(schedule.ranks()));
  Traffic most;
  for (const Transfer& t : schedule.transfers()) {
    if (t.from == t.to) continue;
    Traffic& of_rank = sent[static_cast<std::size_t>(t.from)];
    ++(group(t.from) == group(t.to) ? of_rank.inside : of_rank.across);
    most.inside = std::max(most.inside, of_rank.inside);
    most.across = std::max(most.across, of_rank.across);
  }
  return most;
}

Level runs(int ranks, int group_size) {
  Level level;
  for (Rank rank = 0; rank < ranks; ++rank) level.push_back(rank / group_size);
  return level;
}

Level in_turn(int ranks, int groups) {
  Level level;
  for (Rank rank = 0; rank < ranks; ++rank) level.push_back(rank % groups);
  return level;
}

TEST(Hierarchical, SendsAGroupSizethOfTheDataAcross) {
  for (const int size : {2, 4, 8})
    for (int n = 2; n <= 64; ++n)
      for (const Collective collective : collectives) {
        const std::string name = "hierarchical/" + std::to_string(size);
        const int groups = n / size;
        ASSERT_EQ(supported(name, collective, n), n % size == 0 && groups >= 2) << n;
        if (n % size != 0 || groups < 2) continue;
        const Schedule schedule = built(name, collective, n);
        const int rounds = collective == Collective::all_reduce ? 2 : 1;
        EXPECT_EQ(schedule.steps(), rounds * (1 + log2_up(groups)));
        const auto [inside, across] = traffic(schedule, runs(n, size));
        EXPECT_EQ(inside, rounds * (size - 1) * groups) << "of n-th parts";
        EXPECT_EQ(across, rounds * (groups - 1)) << "of n-th parts";
        EXPECT_EQ(messages_per_step(schedule), size - 1);
        EXPECT_LE(schedule.scratch_groups(), collective == Collective::reduce_scatter ? groups + groups / 2 : 0);
      }
}

TEST(Hierarchical, TakesItsGroupsFromTheMachine) {
  const auto with = [](std::vector<Level> levels, Collective collective = Collective::all_gather) {
    const Shape shape{.collective = collective, .ranks = 12, .levels = std::move(levels)};
    return find_algorithm("hierarchical/0", shape) != nullptr;
  };
  EXPECT_FALSE(with({}));
  EXPECT_FALSE(with({Level(12, 0)})) << "all in one group";
  EXPECT_FALSE(with({runs(12, 1)})) << "each by itself";
  EXPECT_FALSE(with({runs(12, 5)})) << "groups of different sizes";
  EXPECT_TRUE(with({runs(12, 5)}, Collective::all_reduce));
  EXPECT_TRUE(with({runs(12, 4)}));
  EXPECT_TRUE(with({in_turn(12, 4)}));
  EXPECT_TRUE(with({runs(12, 4), runs(12, 1)})) << "the level that says nothing is passed over";
}

struct Machine {
  std::string name;
  int ranks;
  std::vector<Level> levels;
};

std::vector<Machine> machines() {
  return {{"runs", 12, {runs(12, 4)}},
          {"in turn", 12, {in_turn(12, 4)}},
          {"nested", 24, {runs(24, 12), runs(24, 4)}},
          {"nested in turn", 16, {in_turn(16, 2), in_turn(16, 8)}},
          {"three levels", 32, {runs(32, 16), runs(32, 8), runs(32, 2)}},
          {"outer level of different sizes", 12, {{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1}, runs(12, 2)}},
          {"levels across each other", 12, {in_turn(12, 2), runs(12, 6)}},
          {"large groups", 40, {runs(40, 20)}},
          {"groups of different sizes", 11, {runs(11, 4)}},
          {"one by itself", 9, {runs(9, 4)}},
          {"different sizes at every level", 17, {runs(17, 9), runs(17, 2)}}};
}

TEST(Hierarchical, IsRightOnMachines) {
  int seen = 0;
  for (const Machine& machine : machines())
    for (const Collective collective : collectives) {
      const Shape shape{.collective = collective, .ranks = machine.ranks, .levels = machine.levels};
      const Algorithm* algorithm = find_algorithm("hierarchical", shape);
      if (collective != Collective::all_reduce && algorithm == nullptr) continue;
      ASSERT_NE(algorithm, nullptr) << machine.name;
      ++seen;
      EXPECT_EQ(algorithm->name, "hierarchical/0");
      const Schedule schedule = algorithm->build(shape);
      const auto meaning = verify(schedule);
      ASSERT_TRUE(meaning) << machine.name << ", " << text(shape) << ": " << meaning.error().text();
      EXPECT_TRUE(meaning->same_bits) << machine.name;
      for (const Access access : {Access::mapped, Access::cma, Access::slots}) {
        EXPECT_EQ(lowers_to(schedule, access), serves(*algorithm, shape, access))
            << machine.name << " by " << name(access);
        if (!lowers_to(schedule, access)) continue;
        std::vector<Plan> plans = lower_all(schedule, access);
        for (Plan& plan : plans) plan = fuse(std::move(plan), 1);
        for (const CheckCase& how : check_cases(collective, machine.ranks, access)) {
          if (access == Access::slots && how.slots < 1) continue;
          const auto proven = check(schedule, plans, how);
          EXPECT_TRUE(proven) << machine.name << ", " << text(shape) << " by " << name(access) << ": "
                              << proven.error().text();
        }
      }
    }
  EXPECT_EQ(seen, 3 * 8 + 3) << "three of the machines have groups that only an all-reduce can use";
}

TEST(Hierarchical, GoesUpLevelByLevel) {
  const Shape shape{.collective = Collective::all_reduce, .ranks = 32, .levels = {runs(32, 8), runs(32, 2)}};
  const Schedule schedule = find_algorithm("hierarchical", shape)->build(shape);
  EXPECT_EQ(schedule.steps(), 2 * (1 + 1 + 2)) << "2 ranks and 4 groups in a step each, 4 machines in two, and back";
  EXPECT_EQ(traffic(schedule, runs(32, 8)).across, 2 * (4 - 1)) << "of 32nd parts";
  EXPECT_EQ(traffic(schedule, runs(32, 2)).inside, 2 * 16) << "of 32nd parts";
}

}  // namespace
}  // namespace tutti
