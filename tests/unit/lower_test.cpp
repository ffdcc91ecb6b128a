// One rank's program: golden ones by hand, and all of them by the second proof.
#include "plan/lower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/proof/check.h"
#include "plan/fuse.h"
#include "support/plan_text.h"
#include "support/shapes.h"

namespace tutti {
namespace {

using Lines = std::vector<std::string>;
using testing::for_every_algorithm;
using testing::lines;
using testing::text;

void expect_proven(const Schedule& schedule, Access access, int slots_min, std::vector<Plan> all,
                   std::string_view what) {
  for (const CheckCase& how : check_cases(schedule.collective(), schedule.ranks(), access)) {
    if (access == Access::slots && how.slots < slots_min) continue;
    const auto proof = check(schedule, all, how);
    EXPECT_TRUE(proof) << what << " by " << name(access) << " with " << how.slots << " slots: " << proof.error().text();
    if (!proof) return;
  }
}

Schedule schedule_of(std::string_view algorithm, const Shape& shape) {
  return find_algorithm(algorithm, shape)->build(shape);
}

TEST(Lower, SendsThenReceivesThenSettles) {
  const Schedule ring = schedule_of("ring", {.collective = Collective::reduce_scatter, .ranks = 3});
  const Plan plan = lower(ring, 0, Access::slots);
  EXPECT_EQ(lines(plan), (Lines{"acquire 1 x1", "copy *in.2 -> slot(1).0", "commit 1", "peek 2 x1",
                                "reduce slot(2).0 *in.1 -> tmp.0", "release 2", "settle 1",  //
                                "acquire 1 x1", "copy tmp.0 -> slot(1).0", "commit 1", "peek 2 x1",
                                "reduce slot(2).0 *in.0 -> out.0 last", "release 2", "settle 1"}));
  EXPECT_EQ(plan.items_max, 1);
  EXPECT_EQ(plan.scratch_groups, 1);
  EXPECT_EQ(plan.actions.back().step, 1u);
}

TEST(Lower, PacksWhatGoesToOnePeerIntoOneMessage) {
  const Schedule circulant = schedule_of("circulant", {.collective = Collective::all_gather, .ranks = 4});
  EXPECT_EQ(lines(lower(circulant, 1, Access::slots)),
            (Lines{"acquire 0 x1", "copy in.0 -> slot(0).0", "commit 0", "copy in.0 -> out.1", "peek 2 x1",
                   "copy slot(2).0 -> out.2", "release 2", "settle 0",  //
                   "acquire 3 x2", "copy in.0 -> slot(3).0", "copy out.2 -> slot(3).1", "commit 3", "peek 3 x2",
                   "copy slot(3).0 -> out.3", "copy slot(3).1 -> out.0", "release 3", "settle 3"}));
}

TEST(Lower, WaitsForLinesAsTheyAreNeeded) {
  const Schedule gather = schedule_of("one_shot", {.collective = Collective::gather, .ranks = 3, .root = 1});
  EXPECT_EQ(lines(lower(gather, 1, Access::in_line)),
            (Lines{"copy in.0 -> out.1", "wait_descriptor 0", "copy line(0).0 -> out.0", "wait_descriptor 2",
                   "copy line(2).0 -> out.2"}));
  EXPECT_EQ(lines(lower(gather, 0, Access::in_line)), Lines{}) << "nobody waits who needs nothing";

  const Schedule sum = schedule_of("one_shot", {.collective = Collective::all_reduce, .ranks = 3});
  EXPECT_EQ(lines(lower(sum, 1, Access::in_line)),
            (Lines{"wait_descriptor 0", "wait_descriptor 2", "reduce line(0).0 *in.0 line(2).0 -> out.0 last"}));
}

TEST(Lower, RaisesFlagsOnlyWhereABlockJoinsTwoRanks) {
  const Schedule two_shot = schedule_of("two_shot", {.collective = Collective::all_reduce, .ranks = 2});
  EXPECT_EQ(lines(lower(two_shot, 0, Access::mapped)),
            (Lines{"reduce *in.0 *in(1).0 -> out.0 last", "copy out.0 -> out(1).0", "signal 1", "wait 1"}))
      << "no flag between the steps: each part is one rank's affair";
  EXPECT_EQ(lines(lower(two_shot, 0, Access::cma)), (Lines{"reduce *in.0 *in(1).0 -> out.0 last", "signal 1", "wait 1",
                                                           "copy out(1).1 -> out.1", "signal 1", "wait 1"}));
}

TEST(Lower, LetsTheSideWithLessToDoCopy) {
  const Shape gather{.collective = Collective::gather, .ranks = 3, .root = 0};
  const Shape scatter{.collective = Collective::scatter, .ranks = 3, .root = 0};
  EXPECT_EQ(lines(lower(schedule_of("one_shot", gather), 1, Access::mapped)),
            (Lines{"copy in.0 -> out(0).1", "signal 0"}));
  EXPECT_EQ(lines(lower(schedule_of("one_shot", scatter), 1, Access::mapped)),
            (Lines{"copy in(0).1 -> out.0", "signal 0"}));
  EXPECT_EQ(lines(lower(schedule_of("one_shot", scatter), 0, Access::mapped)),
            (Lines{"copy in.0 -> out.0", "wait 1", "wait 2"}));
}

TEST(Lower, GivesEachRankAloneWhatItGivesAll) {
  for (const Access access : {Access::mapped, Access::slots}) {
    const Schedule schedule = schedule_of("ring", {.collective = Collective::all_gather, .ranks = 5});
    const std::vector<Plan> all = lower_all(schedule, access);
    ASSERT_EQ(all.size(), 5u);
    for (Rank rank = 0; rank < 5; ++rank)
      EXPECT_EQ(lines(lower(schedule, rank, access)), lines(all[static_cast<std::size_t>(rank)]));
  }
}

TEST(Lower, ChainsLongReductionsThroughScratch) {
  const Schedule schedule = schedule_of("one_shot", {.collective = Collective::reduce, .ranks = 40, .root = 0});
  const Plan plan = lower(schedule, 0, Access::in_line);
  std::vector<Action> passes;
  for (const Action& a : plan.actions)
    if (a.verb == Verb::reduce) passes.push_back(a);
  ASSERT_EQ(passes.size(), 3u);
  EXPECT_EQ(passes[0].sources, 16);
  EXPECT_EQ(passes[1].sources, 16);
  EXPECT_EQ(passes[2].sources, 10);
  EXPECT_TRUE(same_block(plan.sources(passes[1])[0], plan.destinations(passes[0])[0]));
  EXPECT_EQ(plan.sources(passes[1])[0].halvings, 4) << "of 16 inputs";
  EXPECT_EQ(plan.sources(passes[2])[0].halvings, 5) << "of 31";
  EXPECT_EQ(plan.destinations(passes[2])[0].where, Where::output);
  EXPECT_EQ(passes[0].last + passes[1].last, 0);
  EXPECT_EQ(passes[2].last, 1);
}

TEST(LowersTo, RefusesWhatAnAccessCannotCarry) {
  const auto carried = [](std::string_view algorithm, Collective collective, Access access) {
    return lowers_to(schedule_of(algorithm, {.collective = collective, .ranks = 4}), access);
  };
  EXPECT_FALSE(carried("ring", Collective::all_gather, Access::in_line)) << "more than one step";
  EXPECT_FALSE(carried("ring", Collective::reduce_scatter, Access::mapped)) << "sums in scratch";
  EXPECT_FALSE(carried("two_shot", Collective::reduce, Access::cma)) << "sums in scratch";
  EXPECT_TRUE(carried("two_shot", Collective::reduce, Access::mapped)) << "pushed from scratch";
  EXPECT_FALSE(carried("one_shot", Collective::all_reduce, Access::mapped)) << "in place, inputs are overwritten";
}

TEST(LowersTo, RefusesAnExchangeOfBlocksWithinARank) {
  Schedule schedule({.collective = Collective::all_gather, .ranks = 2}, 1);
  for (const Rank rank : {0, 1})
    for (const Rank to : {0, 1}) schedule.copy(rank, {Buffer::input, 0}, to, {Buffer::output, 1 - rank});
  EXPECT_TRUE(lowers_to(schedule, Access::slots));
  schedule.next_step();
  for (const Rank rank : {0, 1})
    for (const int group : {0, 1}) schedule.copy(rank, {Buffer::output, group}, rank, {Buffer::output, 1 - group});
  EXPECT_FALSE(lowers_to(schedule, Access::slots)) << "each copy overwrites what the other reads";
}

TEST(Lower, OrdersCopiesWithinARank) {
  Schedule schedule({.collective = Collective::all_gather, .ranks = 2}, 1);
  schedule.copy(0, {Buffer::input, 0}, 0, {Buffer::scratch, 0});
  schedule.copy(0, {Buffer::input, 0}, 0, {Buffer::scratch, 1});
  schedule.next_step();
  schedule.copy(0, {Buffer::scratch, 0}, 0, {Buffer::scratch, 1});
  schedule.copy(0, {Buffer::scratch, 1}, 0, {Buffer::scratch, 2});
  const Lines plan = lines(lower(schedule, 0, Access::slots));
  EXPECT_EQ(plan[2], "copy tmp.1 -> tmp.2") << "before tmp.1 is overwritten";
  EXPECT_EQ(plan[3], "copy tmp.0 -> tmp.1");
}

/// Takes out `plan`'s k-th action of that verb and peer.
void take_out(Plan& plan, Verb verb, Rank peer, std::ptrdiff_t k) {
  const auto matches = [&](const Action& a) { return a.verb == verb && a.peer == peer; };
  auto at = std::ranges::find_if(plan.actions, matches);
  for (; k > 0; --k) at = std::find_if(at + 1, plan.actions.end(), matches);
  ASSERT_NE(at, plan.actions.end());
  plan.actions.erase(at);
}

// Each flag of these plans is there for a reason.
TEST(Lower, RaisesNoFlagThatOthersImply) {
  for (const auto& [algorithm, collective] : std::initializer_list<std::pair<std::string_view, Collective>>{
           {"two_shot", Collective::all_reduce}, {"ring", Collective::all_gather}, {"two_shot", Collective::broadcast}})
    for (const Access access : {Access::mapped, Access::cma}) {
      const Schedule schedule = schedule_of(algorithm, {.collective = collective, .ranks = 3});
      const std::vector<Plan> all = lower_all(schedule, access);
      const std::vector<Action>& actions = all[0].actions;
      for (auto wait = actions.begin(); wait != actions.end(); ++wait) {
        if (wait->verb != Verb::wait) continue;
        std::vector<Plan> spoilt = all;
        const auto same = [&](const Action& a) { return a.verb == Verb::wait && a.peer == wait->peer; };
        const auto k = std::count_if(actions.begin(), wait, same);
        take_out(spoilt[0], Verb::wait, wait->peer, k);
        take_out(spoilt[wait->peer], Verb::signal, 0, k);
        EXPECT_FALSE(check(schedule, spoilt, {})) << algorithm << " by " << name(access) << ": " << k << "th wait for "
                                                  << wait->peer << " of " << ::testing::PrintToString(lines(all[0]));
      }
    }
}

class EveryPlan : public ::testing::TestWithParam<int> {};

TEST_P(EveryPlan, IsProven) {
  for_every_algorithm(GetParam(), [](const Algorithm& algorithm, const Shape& shape) {
    const Schedule schedule = algorithm.build(shape);
    for (const Access access : {Access::in_line, Access::mapped, Access::cma, Access::slots})
      if (lowers_to(schedule, access)) {
        std::vector<Plan> all = lower_all(schedule, access);
        expect_proven(schedule, access, 0, all, text(algorithm, shape));
        for (Plan& plan : all) plan = fuse(std::move(plan));
        expect_proven(schedule, access, 0, all, "fused " + text(algorithm, shape));
        if (access != Access::slots) continue;
        all = lower_all(schedule, access);
        for (Plan& plan : all) plan = fuse(std::move(plan), 2);
        expect_proven(schedule, access, 2, all, "fused for two slots " + text(algorithm, shape));
      }
  });
}

// The proofs of more ranks are in contract/proof_test.cpp.
INSTANTIATE_TEST_SUITE_P(Ranks, EveryPlan, ::testing::Values(1, 2, 3, 5));

}  // namespace
}  // namespace tutti
