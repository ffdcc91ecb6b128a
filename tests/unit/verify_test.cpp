// The proof refuses wrong schedules, and says where.
#include "plan/verify.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/limits.h"

namespace tutti {
namespace {

constexpr Ref in(int block) {
  return {Buffer::input, block};
}
constexpr Ref out(int block) {
  return {Buffer::output, block};
}
constexpr Ref tmp(int block) {
  return {Buffer::scratch, block};
}

Shape pair_of(Collective collective) {
  return {.collective = collective, .ranks = 2};
}

void expect_refused(const Schedule& schedule, Rank peer, std::string_view part_of_text) {
  const auto meaning = verify(schedule);
  ASSERT_FALSE(meaning) << "should be refused: " << part_of_text;
  EXPECT_EQ(meaning.error().code, Code::internal);
  EXPECT_EQ(meaning.error().peer, peer) << meaning.error().text();
  EXPECT_NE(meaning.error().what.find(part_of_text), std::string::npos) << meaning.error().what;
}

/// Both ranks' inputs into the output of `to`.
void add_both(Schedule& schedule, Rank to) {
  schedule.reduce(0, in(0), to, out(0), 0);
  schedule.reduce(1, in(0), to, out(0), 1);
}

TEST(Verify, AcceptsWhatIsRight) {
  Schedule schedule(pair_of(Collective::all_reduce), 1);
  add_both(schedule, 0);
  add_both(schedule, 1);
  const auto meaning = verify(schedule);
  ASSERT_TRUE(meaning) << meaning.error().text();
  EXPECT_TRUE(meaning->same_bits);
  EXPECT_EQ(meaning->order.size(), 1u);
}

TEST(Verify, RefusesAMissingContribution) {
  Schedule schedule(pair_of(Collective::all_reduce), 1);
  add_both(schedule, 0);
  schedule.reduce(0, in(0), 1, out(0), 0);
  expect_refused(schedule, 1,
                 "output block 0 ends wrong: the contribution of rank 1 is missing: it came to output block 0 "
                 "of rank 0 in step 0, and not from there to rank 1; the block was last written in step 0");
}

TEST(Verify, NamesTheWriteThatLosesAContribution) {
  Schedule schedule(pair_of(Collective::all_reduce), 1);
  add_both(schedule, 0);
  add_both(schedule, 1);
  schedule.copy(1, in(0), 0, tmp(0));
  schedule.next_step();
  schedule.copy(0, tmp(0), 0, out(0));
  expect_refused(schedule, 0,
                 "output block 0 ends wrong: the contribution of rank 0 is missing: output block 0 of rank 0 "
                 "had it until it was overwritten in step 1");
}

TEST(Verify, NamesAContributionThatNothingReads) {
  Schedule schedule({.collective = Collective::all_reduce, .ranks = 3}, 1);
  for (const Rank to : {0, 1, 2})
    for (const Rank from : {0, 1, 2})
      if (from != 2) schedule.reduce(from, in(0), to, out(0), from);
  expect_refused(schedule, 0,
                 "output block 0 ends wrong: the contribution of rank 2 is missing: no transfer reads it; the "
                 "block was last written in step 0");
}

/// A sum that comes through the rank whose contribution it lacks.
TEST(Verify, NamesTheWriteThatShouldHaveAddedAContribution) {
  Schedule schedule({.collective = Collective::reduce, .ranks = 3, .root = 0}, 1);
  schedule.copy(2, in(0), 1, tmp(0));
  schedule.next_step();
  schedule.reduce(0, in(0), 0, out(0), 0);
  schedule.reduce(1, tmp(0), 0, out(0), 1);
  expect_refused(
      schedule, 0,
      "the contribution of rank 1 is missing: no transfer reads it; scratch block 0 of rank 1 went on without "
      "it in step 0; the block was last written in step 1");
}

/// The loss is upstream: rank 1 drops its own contribution, and rank 2 passes on what is left.
TEST(Verify, NamesALossOnTheWay) {
  Schedule schedule({.collective = Collective::reduce, .ranks = 3, .root = 0}, 1);
  schedule.reduce(2, in(0), 1, tmp(0), 0);
  schedule.reduce(1, in(0), 1, tmp(0), 1);
  schedule.next_step();
  schedule.copy(2, in(0), 1, tmp(0));
  schedule.next_step();
  schedule.reduce(0, in(0), 0, out(0), 0);
  schedule.reduce(1, tmp(0), 0, out(0), 1);
  expect_refused(schedule, 0,
                 "the contribution of rank 1 is missing: scratch block 0 of rank 1 had it until it was "
                 "overwritten in step 1; the block was last written in step 2");
}

TEST(Verify, RefusesAnOutputThatIsNeverWritten) {
  Schedule schedule(pair_of(Collective::all_gather), 1);
  schedule.copy(0, in(0), 0, out(0));
  schedule.copy(1, in(0), 0, out(1));
  schedule.copy(1, in(0), 1, out(1));
  expect_refused(schedule, 1,
                 "output block 0 ends wrong: it is never written, and input block 0 of rank 0 is missing: it "
                 "came to output block 0 of rank 0 in step 0, and not from there to rank 1");
}

TEST(Verify, RefusesAContributionThatCountsTwice) {
  Schedule schedule(pair_of(Collective::all_reduce), 1);
  add_both(schedule, 0);
  add_both(schedule, 1);
  schedule.next_step();
  schedule.reduce(0, out(0), 1, out(0), 0);
  schedule.reduce(1, out(0), 1, out(0), 1);
  expect_refused(schedule, 1, "counts a contribution twice, that of rank 0");
}

TEST(Verify, RefusesAMixtureOfBlocks) {
  Schedule schedule(pair_of(Collective::reduce_scatter), 1);
  schedule.reduce(0, in(0), 0, out(0), 0);
  schedule.reduce(1, in(1), 0, out(0), 1);
  expect_refused(schedule, 0, "output block 0 mixes blocks, input blocks 0 and 1");
}

TEST(Verify, RefusesBlocksInTheWrongPlace) {
  Schedule schedule(pair_of(Collective::all_to_all), 1);
  for (const Rank from : {0, 1})
    for (const Rank to : {0, 1}) schedule.copy(from, in(to), to, out(1 - from));
  expect_refused(schedule, 0,
                 "output block 0 ends wrong: it has input block 0 of rank 1, and input block 0 of rank 0 is "
                 "missing: it came to output block 1 of rank 0 in step 0, and not from there to the block");
}

TEST(Verify, RefusesToReadWhatIsNotWritten) {
  Schedule schedule(pair_of(Collective::all_gather), 1);
  schedule.copy(0, in(0), 0, tmp(0));
  schedule.copy(0, tmp(0), 1, out(0));
  expect_refused(schedule, 0, "scratch block 0 is read before");
}

/// The inputs of three ranks in the last one's result, in this order; the others' results are right.
Schedule scan_of_three(std::initializer_list<int> orders) {
  Schedule schedule({.collective = Collective::scan, .ranks = 3}, 1);
  for (const Rank to : {0, 1, 2})
    for (Rank from = 0; from <= to; ++from)
      schedule.reduce(from, in(0), to, out(0), to == 2 ? orders.begin()[from] : from);
  return schedule;
}

TEST(Verify, RefusesAPrefixThatIsNotInTheOrderOfRanks) {
  const auto right = verify(scan_of_three({0, 1, 2}));
  ASSERT_TRUE(right) << right.error().text();
  EXPECT_TRUE(right->rank_order);
  expect_refused(scan_of_three({1, 0, 2}), 2,
                 "output block 0 ends wrong: its contributions are not in the order of ranks");
  expect_refused(scan_of_three({0, 2, 1}), 2, "output block 0 ends wrong");
}

TEST(Verify, RefusesAPrefixOfOtherRanks) {
  Schedule few({.collective = Collective::scan, .ranks = 2}, 1), many = few;
  for (const Rank rank : {0, 1}) few.copy(rank, in(0), rank, out(0));
  expect_refused(few, 1, "output block 0 ends wrong");
  for (const Rank rank : {0, 1}) add_both(many, rank);
  expect_refused(many, 0, "output block 0 ends wrong: the contribution of rank 1 does not belong to it");
  Schedule own(pair_of(Collective::ex_scan), 1);
  own.copy(1, in(0), 1, out(0));
  expect_refused(own, 1, "output block 0 ends wrong");
}

TEST(Verify, AcceptsABracketedPrefix) {
  Schedule schedule({.collective = Collective::ex_scan, .ranks = 4}, 1);
  for (const Rank to : {1, 2, 3})
    for (const Rank from : {to - 2, to - 1})
      if (from >= 0) schedule.reduce(from, in(0), to, out(0), from);
  schedule.next_step();
  schedule.reduce(1, out(0), 3, out(0), 0);
  schedule.reduce(3, out(0), 3, out(0), 1);
  const auto meaning = verify(schedule);
  ASSERT_TRUE(meaning) << meaning.error().text();
  EXPECT_FALSE(meaning->rank_order) << "in two passes";
}

TEST(Verify, ReadsWhatTheStepBeganWith) {
  Schedule schedule(pair_of(Collective::all_reduce), 1);
  add_both(schedule, 0);
  schedule.copy(0, out(0), 1, out(0));
  expect_refused(schedule, 0, "output block 0 is read before");
}

TEST(Verify, RefusesTwoWritesOfOneBlock) {
  Schedule copies(pair_of(Collective::broadcast), 1);
  copies.copy(0, in(0), 0, out(0));
  copies.copy(0, in(0), 1, out(0));
  copies.copy(0, in(0), 1, out(0));
  expect_refused(copies, 1, "is written twice in one step");

  Schedule mixed(pair_of(Collective::all_reduce), 1);
  add_both(mixed, 0);
  mixed.copy(1, in(0), 0, out(0));
  expect_refused(mixed, 0, "is written twice in one step");
}

TEST(Verify, RefusesAnUndecidedOrder) {
  Schedule schedule(pair_of(Collective::all_reduce), 1);
  schedule.reduce(0, in(0), 0, out(0), 5);
  schedule.reduce(1, in(0), 0, out(0), 5);
  expect_refused(schedule, 0, "have order 5");
}

TEST(Verify, RefusesRefsOutsideTheirBuffers) {
  const auto refused = [](Collective collective, Ref src, Ref dst, int parts, Rank peer, std::string_view what) {
    Schedule schedule({.collective = collective, .ranks = 2, .root = 0}, parts);
    schedule.copy(0, src, 1, dst);
    expect_refused(schedule, peer, what);
  };
  refused(Collective::all_gather, in(1), out(0), 1, 1, "rank 0 has no input block 1");
  refused(Collective::all_gather, in(-1), out(0), 1, 1, "rank 0 has no input block -1");
  refused(Collective::all_gather, in(0), out(2), 1, 1, "rank 1 has no output block 2");
  refused(Collective::gather, in(0), out(0), 1, 1, "rank 1 has no output block 0");
  refused(Collective::all_gather, in(0), in(0), 1, 1, "input block 0 is written");
  refused(Collective::all_gather, in(0), out(1), 2, 1, "blocks of two parts");
}

TEST(Verify, RefusesAReductionWhereNothingIsReduced) {
  Schedule schedule(pair_of(Collective::broadcast), 1);
  schedule.reduce(0, in(0), 1, out(0), 0);
  expect_refused(schedule, 1, "broadcast reduces");
}

TEST(Verify, RefusesToReadAnInputThatIsOverwrittenInPlace) {
  Schedule schedule(pair_of(Collective::all_reduce), 1);
  add_both(schedule, 0);
  schedule.next_step();
  schedule.reduce(0, in(0), 1, out(0), 0);
  schedule.reduce(1, in(0), 1, out(0), 1);
  expect_refused(schedule, 0, "input block 0 is read after its place was written");
}

TEST(Verify, LetsAGatheredBlockBeReadFromItsInputToo) {
  Schedule schedule(pair_of(Collective::all_gather), 1);
  for (const Rank rank : {0, 1}) schedule.copy(rank, in(0), rank, out(rank));
  schedule.next_step();
  for (const Rank rank : {0, 1}) schedule.copy(rank, in(0), 1 - rank, out(rank));
  EXPECT_TRUE(verify(schedule));
}

std::uint64_t order_of(int ranks, const std::function<void(Schedule&)>& write) {
  Schedule schedule({.collective = Collective::reduce, .ranks = ranks}, 1);
  write(schedule);
  const auto meaning = verify(schedule);
  EXPECT_TRUE(meaning) << meaning.error().text();
  return meaning ? meaning->order[0] : 0;
}

/// Rank 0 reduces all inputs, in one step or in steps of `at_once` further ones.
std::uint64_t order_in_passes(int ranks, int first_pass, int at_once) {
  return order_of(ranks, [&](Schedule& schedule) {
    for (int next = 0; next < ranks; schedule.next_step()) {
      const int end = std::min(ranks, next + (next == 0 ? first_pass : at_once));
      if (next > 0) schedule.reduce(0, out(0), 0, out(0), -1);
      for (; next < end; ++next) schedule.reduce(next, in(0), 0, out(0), next);
    }
  });
}

TEST(Order, TellsGroupingsApart) {
  EXPECT_EQ(order_in_passes(4, 4, 1), order_in_passes(4, 4, 2));
  EXPECT_NE(order_in_passes(4, 4, 1), order_in_passes(4, 2, 1)) << "in one pass, and in three";
  EXPECT_NE(order_in_passes(4, 2, 2), order_in_passes(4, 2, 1));
}

TEST(Order, TellsOperandsApart) {
  const auto in_order = [](int first, int second) {
    return order_of(2, [&](Schedule& schedule) {
      schedule.reduce(0, in(0), 0, out(0), first);
      schedule.reduce(1, in(0), 0, out(0), second);
    });
  };
  EXPECT_EQ(in_order(0, 1), in_order(-7, 20));
  EXPECT_NE(in_order(0, 1), in_order(1, 0));
}

TEST(Order, OfALongReductionIsThatOfAChainOfPasses) {
  constexpr int most = limits::sources_max;
  EXPECT_EQ(order_in_passes(40, 40, 0), order_in_passes(40, most, most - 1));
  EXPECT_NE(order_in_passes(40, 40, 0), order_in_passes(40, most, most - 2));
  EXPECT_EQ(order_in_passes(most, most, 0), order_in_passes(most, most, 1));
}

TEST(Order, SaysWhenRanksComputeDifferentBits) {
  Schedule schedule(pair_of(Collective::all_reduce), 1);
  add_both(schedule, 0);
  schedule.reduce(0, in(0), 1, out(0), 1);
  schedule.reduce(1, in(0), 1, out(0), 0);
  const auto meaning = verify(schedule);
  ASSERT_TRUE(meaning);
  EXPECT_FALSE(meaning->same_bits);
}

TEST(Order, SaysWhetherItIsThatOfRanks) {
  const auto is_that_of_ranks = [](Collective collective, std::initializer_list<int> orders) {
    Schedule schedule({.collective = collective, .ranks = 3}, 2);
    for (const Rank to : {0, 1, 2})
      for (const int part : {0, 1})
        for (Rank from = 0; to == 0 && from < 3; ++from)
          schedule.reduce(from, in(part), to, out(part), part == 1 ? orders.begin()[from] : from);
    const auto meaning = verify(schedule);
    EXPECT_TRUE(meaning) << meaning.error().text();
    return meaning && meaning->rank_order;
  };
  EXPECT_TRUE(is_that_of_ranks(Collective::reduce, {0, 1, 2}));
  EXPECT_FALSE(is_that_of_ranks(Collective::reduce, {0, 2, 1})) << "its second block alone is not";
  EXPECT_NE(order_in_passes(20, 16, 15), order_in_passes(20, 10, 10));
}

}  // namespace
}  // namespace tutti
