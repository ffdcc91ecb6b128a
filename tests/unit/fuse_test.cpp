// Passes over memory that are saved, seen in whole plans, and what must not be merged.
#include "plan/fuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "analysis/proof/check.h"
#include "plan/lower.h"
#include "support/plan_text.h"
#include "support/shapes.h"

namespace tutti {
namespace {

using testing::lines;
using Lines = std::vector<std::string>;

struct Call {
  std::string_view algorithm;
  Collective collective;
  int ranks;
  Rank root = 0;
};

Schedule schedule_of(const Call& call) {
  const Shape shape{.collective = call.collective, .ranks = call.ranks, .root = call.root};
  return find_algorithm(call.algorithm, shape)->build(shape);
}

Plan fused(const Call& call, Rank rank, Access access, int slots = 1) {
  return fuse(lower(schedule_of(call), rank, access), slots);
}

int passes(const Plan& plan) {
  return static_cast<int>(std::ranges::count_if(
      plan.actions, [](const Action& a) { return a.verb == Verb::copy || a.verb == Verb::reduce; }));
}

TEST(Fuse, MakesTwoShotAllReduceOnePass) {
  EXPECT_EQ(lines(fused({"two_shot", Collective::all_reduce, 3}, 1, Access::mapped)),
            (Lines{"reduce *in(0).1 *in.1 *in(2).1 -> out.1 out(2).1 out(0).1 last", "signal 2", "signal 0", "wait 2",
                   "wait 0"}));
  for (const int ranks : {2, 3, 8, 16})
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Plan plan = fused({"two_shot", Collective::all_reduce, ranks}, rank, Access::mapped);
      ASSERT_EQ(passes(plan), 1) << ranks;
      EXPECT_EQ(plan.sources(plan.actions[0]).size(), static_cast<std::size_t>(ranks));
      EXPECT_EQ(plan.destinations(plan.actions[0]).size(), static_cast<std::size_t>(ranks));
      EXPECT_EQ(static_cast<int>(plan.actions.size()), 1 + 2 * (ranks - 1)) << "and a flag to and from each peer";
    }
}

TEST(Fuse, MakesEveryDirectWindowCollectiveOnePassOfEachRank) {
  for (const Call& call : std::initializer_list<Call>{{"two_shot", Collective::reduce, 5, 3},
                                                      {"two_shot", Collective::broadcast, 5, 3},
                                                      {"one_shot", Collective::all_gather, 5},
                                                      {"one_shot", Collective::reduce_scatter, 5}})
    for (Rank rank = 0; rank < call.ranks; ++rank)
      EXPECT_EQ(passes(fused(call, rank, Access::mapped)), 1) << call.algorithm << " " << name(call.collective);
}

TEST(Fuse, DropsTheScratchOfAReduction) {
  EXPECT_EQ(lines(fused({"two_shot", Collective::reduce, 3, 2}, 0, Access::mapped)),
            (Lines{"reduce *in.0 *in(1).0 *in(2).0 -> out(2).0 last", "signal 1", "signal 2", "wait 1", "wait 2"}));
}

TEST(Fuse, MakesALongReductionTwoPasses) {
  const Plan plan = fused({"two_shot", Collective::all_reduce, 20}, 19, Access::mapped);
  ASSERT_EQ(passes(plan), 2);
  EXPECT_EQ(plan.sources(plan.actions[0]).size(), 16u);
  EXPECT_EQ(plan.sources(plan.actions[1]).size(), 5u);
  EXPECT_EQ(plan.destinations(plan.actions[1]).size(), 20u);
  EXPECT_EQ(plan.destinations(plan.actions[0])[0].where, Where::scratch) << "its input is still to be read, in place";
}

TEST(Fuse, ForwardsInTreesWithOneSlot) {
  EXPECT_EQ(
      lines(fused({"binomial", Collective::broadcast, 4}, 1, Access::slots)),
      (Lines{"peek 0 x1", "acquire 3 x1", "copy slot(0).0 -> out.0 slot(3).0", "commit 3", "release 0", "settle 3"}));
}

TEST(Fuse, ForwardsInRingsWithTwoSlots) {
  const Call ring{"ring", Collective::all_reduce, 3};
  EXPECT_EQ(passes(fused(ring, 0, Access::slots, 1)), passes(lower(schedule_of(ring), 0, Access::slots)));
  EXPECT_EQ(lines(fused(ring, 0, Access::slots, 2)), (Lines{"acquire 1 x1",
                                                            "copy *in.0 -> slot(1).0",
                                                            "commit 1",  //
                                                            "peek 2 x1",
                                                            "acquire 1 x1",
                                                            "reduce *in.2 slot(2).0 -> slot(1).0",
                                                            "commit 1",
                                                            "release 2",
                                                            "settle 1",  //
                                                            "peek 2 x1",
                                                            "acquire 1 x1",
                                                            "reduce *in.1 slot(2).0 -> out.1 slot(1).0 last",
                                                            "commit 1",
                                                            "release 2",
                                                            "settle 1",  //
                                                            "peek 2 x1",
                                                            "acquire 1 x1",
                                                            "copy slot(2).0 -> out.0 slot(1).0",
                                                            "commit 1",
                                                            "release 2",
                                                            "settle 1",  //
                                                            "peek 2 x1",
                                                            "copy slot(2).0 -> out.2",
                                                            "release 2",
                                                            "settle 1"}));
}

// With one slot, a ring of forwarding passes waits for itself; the proof would see it.
TEST(Fuse, OfARingForTwoSlotsIsRefusedWithOne) {
  const Schedule schedule = schedule_of({"ring", Collective::all_reduce, 4});
  std::vector<Plan> plans;
  for (Rank rank = 0; rank < 4; ++rank) plans.push_back(fuse(lower(schedule, rank, Access::slots), 2));
  EXPECT_TRUE(check(schedule, plans, {.slots = 2}));
  const auto proof = check(schedule, plans, {.slots = 1});
  ASSERT_FALSE(proof);
  EXPECT_NE(proof.error().what.find("deadlock"), std::string::npos) << proof.error().text();
}

TEST(Fuse, NeverMergesReductions) {
  for (const int ranks : {2, 4, 7, 20})
    testing::for_every_algorithm(ranks, [](const Algorithm& algorithm, const Shape& shape) {
      const Schedule schedule = algorithm.build(shape);
      const auto reductions = [](const Plan& plan) {
        std::vector<std::size_t> sources;
        for (const Action& a : plan.actions)
          if (a.verb == Verb::reduce) sources.push_back(a.sources);
        return sources;
      };
      for (const Access access : {Access::in_line, Access::mapped, Access::cma, Access::slots})
        if (lowers_to(schedule, access)) {
          const Plan plain = lower(schedule, shape.ranks - 1, access);
          EXPECT_EQ(reductions(fuse(plain, 2)), reductions(plain)) << testing::text(algorithm, shape);
        }
    });
}

TEST(Fuse, NeverAddsPasses) {
  testing::for_every_algorithm(6, [](const Algorithm& algorithm, const Shape& shape) {
    const Schedule schedule = algorithm.build(shape);
    for (const Access access : {Access::in_line, Access::mapped, Access::cma, Access::slots})
      if (lowers_to(schedule, access)) {
        const Plan plain = lower(schedule, 5, access);
        EXPECT_LE(passes(fuse(plain)), passes(plain)) << testing::text(algorithm, shape);
        EXPECT_LE(passes(fuse(plain, 2)), passes(fuse(plain))) << testing::text(algorithm, shape);
      }
  });
}

TEST(Fuse, IsDoneAtOnce) {
  testing::for_every_algorithm(6, [](const Algorithm& algorithm, const Shape& shape) {
    const Schedule schedule = algorithm.build(shape);
    for (const Access access : {Access::mapped, Access::slots})
      if (lowers_to(schedule, access)) {
        const Plan once = fuse(lower(schedule, 5, access), 2);
        EXPECT_EQ(lines(fuse(once, 2)), lines(once)) << testing::text(algorithm, shape);
      }
  });
}

}  // namespace
}  // namespace tutti
