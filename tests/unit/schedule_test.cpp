// How transfers are collected, and where the shorthand's values live.
#include "plan/schedule.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace tutti {
namespace {

constexpr Shape all_reduce{.collective = Collective::all_reduce, .ranks = 4};

TEST(Schedule, CountsStepsThatHaveTransfers) {
  Schedule schedule(all_reduce, 1);
  EXPECT_EQ(schedule.steps(), 0);
  schedule.next_step();
  schedule.next_step();
  schedule.copy(0, {Buffer::input, 0}, 1, {Buffer::scratch, 0});
  EXPECT_EQ(schedule.steps(), 1);
  schedule.next_step();
  EXPECT_EQ(schedule.steps(), 1);
  schedule.next_step();
  schedule.copy(1, {Buffer::scratch, 0}, 0, {Buffer::output, 0});
  EXPECT_EQ(schedule.steps(), 2);
  EXPECT_EQ(schedule.transfers()[0].step, 0);
  EXPECT_EQ(schedule.transfers()[1].step, 1);
}

TEST(Schedule, GrowsScratchByWholeGroups) {
  Schedule schedule(all_reduce, 3);
  EXPECT_EQ(schedule.scratch_groups(), 0);
  schedule.copy(0, {Buffer::input, 1}, 0, {Buffer::scratch, 1});
  EXPECT_EQ(schedule.scratch_groups(), 1);
  schedule.copy(0, {Buffer::input, 0}, 0, {Buffer::scratch, 6});
  EXPECT_EQ(schedule.scratch_groups(), 3);
}

TEST(Schedule, KeepsAGroupForReductionsInSeveralPasses) {
  Schedule schedule({.collective = Collective::all_reduce, .ranks = limits::sources_max + 1}, 1);
  for (Rank from = 0; from < limits::sources_max; ++from)
    schedule.reduce(from, {Buffer::input, 0}, 0, {Buffer::output, 0}, from);
  EXPECT_FALSE(schedule.chained());
  EXPECT_EQ(schedule.scratch_groups(), 0);
  schedule.reduce(limits::sources_max, {Buffer::input, 0}, 1, {Buffer::output, 0}, 0);
  EXPECT_FALSE(schedule.chained()) << "another destination";
  schedule.reduce(limits::sources_max, {Buffer::input, 0}, 0, {Buffer::output, 0}, limits::sources_max);
  EXPECT_TRUE(schedule.chained());
  EXPECT_EQ(schedule.scratch_groups(), 1);
}

TEST(Shorthand, ReadsTheInputUntilTheStepAfterTheFirstWrite) {
  Schedule schedule(all_reduce, 2);
  EXPECT_EQ(schedule.held(1, 0), (Ref{Buffer::input, 0}));
  schedule.reduce(0, 1, 0);
  EXPECT_EQ(schedule.held(1, 0), (Ref{Buffer::input, 0})) << "transfers of a step read what it began with";
  schedule.next_step();
  EXPECT_EQ(schedule.held(1, 0), (Ref{Buffer::output, 0}));
  EXPECT_EQ(schedule.held(1, 1), (Ref{Buffer::input, 1}));
  EXPECT_EQ(schedule.held(0, 0), (Ref{Buffer::input, 0}));
}

TEST(Shorthand, AddsTheOwnValueOnceAndOrdersByRank) {
  Schedule schedule(all_reduce, 1);
  schedule.reduce(3, 1, 0);
  schedule.reduce(0, 1, 0);
  ASSERT_EQ(schedule.transfers().size(), 3u);
  for (const Transfer& t : schedule.transfers()) {
    EXPECT_EQ(t.order, t.from);
    EXPECT_EQ(t.kind, Kind::reduce);
    EXPECT_EQ(t.to, 1);
    EXPECT_EQ(t.dst, (Ref{Buffer::output, 0}));
  }
  schedule.next_step();
  schedule.reduce(2, 1, 0);
  ASSERT_EQ(schedule.transfers().size(), 5u);
  EXPECT_EQ(schedule.transfers()[3].from, 1);
  EXPECT_EQ(schedule.transfers()[3].src, (Ref{Buffer::output, 0}));
}

TEST(Shorthand, UsesScratchWhereThereIsNoOutput) {
  Schedule schedule({.collective = Collective::reduce, .ranks = 3, .root = 1}, 1);
  schedule.reduce(2, 0, 0);
  EXPECT_EQ(schedule.transfers()[0].dst, (Ref{Buffer::scratch, 0}));
  schedule.next_step();
  EXPECT_EQ(schedule.held(0, 0), (Ref{Buffer::scratch, 0}));
  schedule.reduce(0, 1, 0);
  EXPECT_EQ(schedule.transfers().back().dst, (Ref{Buffer::output, 0}));
}

TEST(Shorthand, HoldsABroadcastInTheOutput) {
  Schedule schedule({.collective = Collective::broadcast, .ranks = 3, .root = 1}, 1);
  EXPECT_EQ(schedule.held(1, 0), (Ref{Buffer::input, 0}));
  EXPECT_EQ(schedule.held(0, 0), (Ref{Buffer::output, 0}));
}

TEST(Groups, FollowFromTheCollective) {
  const auto in = [](Collective c, Rank rank) { return input_groups(c, 5, rank, /*root=*/2); };
  const auto out = [](Collective c, Rank rank) { return output_groups(c, 5, rank, /*root=*/2); };
  EXPECT_EQ(in(Collective::broadcast, 2), 1);
  EXPECT_EQ(in(Collective::broadcast, 0), 0);
  EXPECT_EQ(in(Collective::scatter, 2), 5);
  EXPECT_EQ(in(Collective::scatter, 0), 0);
  EXPECT_EQ(in(Collective::reduce_scatter, 0), 5);
  EXPECT_EQ(out(Collective::reduce_scatter, 0), 1);
  EXPECT_EQ(out(Collective::reduce, 2), 1);
  EXPECT_EQ(out(Collective::reduce, 0), 0);
  EXPECT_EQ(out(Collective::gather, 2), 5);
  EXPECT_EQ(out(Collective::gather, 0), 0);
  EXPECT_EQ(out(Collective::all_gather, 0), 5);
  EXPECT_EQ(in(Collective::barrier, 0), 1);
  EXPECT_EQ(out(Collective::barrier, 0), 5);
  EXPECT_EQ(out(Collective::scan, 0), 1);
  EXPECT_EQ(in(Collective::ex_scan, 4), 1);
  EXPECT_EQ(out(Collective::ex_scan, 1), 1);
  EXPECT_EQ(out(Collective::ex_scan, 0), 0);
}

TEST(InPlace, IsTheOwnBlockOfTheLargerBuffer) {
  const auto same = [](Collective c, Rank rank, int block) {
    return in_place_block(c, 4, /*parts=*/3, rank, 1, block);
  };
  EXPECT_EQ(same(Collective::all_reduce, 2, 1), 1);
  EXPECT_EQ(same(Collective::all_gather, 2, 1), 7);
  EXPECT_EQ(same(Collective::reduce_scatter, 2, 7), 1);
  EXPECT_EQ(same(Collective::reduce_scatter, 2, 3), -1);
  EXPECT_EQ(same(Collective::reduce, 1, 2), 2);
  EXPECT_EQ(same(Collective::reduce, 0, 2), -1) << "no output";
  EXPECT_EQ(same(Collective::gather, 1, 0), 3);
  EXPECT_EQ(same(Collective::scatter, 1, 3), 0);
  EXPECT_EQ(same(Collective::all_to_all, 1, 3), -1);
  EXPECT_EQ(same(Collective::scan, 2, 1), 1);
  EXPECT_EQ(same(Collective::ex_scan, 2, 1), -1) << "the input is copied";
}

}  // namespace
}  // namespace tutti
