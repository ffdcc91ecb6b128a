// The same library on different machines: ways and loops follow from the numbers of the machine.
#include "choice/ways.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>
#include <string_view>

#include "choice/choice.h"
#include "tune/keep.h"

namespace tutti {
namespace {

constexpr std::size_t large = 2;  // of LoopFootprints

Machine machine(std::string_view name) {
  const auto read = read_machine_file(TUTTI_TEST_MACHINES "/speeds/" + std::string(name));
  EXPECT_TRUE(read) << (read ? "" : read.error().what);
  return read ? *read : Machine{};
}

Ways ways(const Machine& machine, Collective collective, int ranks = 2) {
  Envelopes envelopes;
  const auto make = [&](const Shape& shape, Access access, const Machine& on, const Conditions& conditions) {
    return envelopes.of(shape, access, "", on, conditions);
  };
  return predict_ways({.collective = collective, .ranks = ranks}, machine, {.cores = ranks}, /*ordinary=*/true, make);
}

std::size_t width(std::size_t bytes) {
  return static_cast<std::size_t>(std::bit_width(bytes));
}

TEST(Machines, OfIntelTakesPagesInTurnWhereAnEpycTakesThemOneByOne) {
  constexpr std::size_t both = pass_class(2, 2, /*own=*/false);
  const LoopTable intel = machine("intel_xeon_avx512").loops.table();
  const LoopTable epyc = machine("amd_epyc_zen3").loops.table();
  EXPECT_EQ(intel.at(both, 0), Loop::plain);
  EXPECT_EQ(epyc.at(both, 0), Loop::nontemporal);
  EXPECT_EQ(intel.at(both, large), Loop::nontemporal_pages);
  EXPECT_EQ(epyc.at(both, large), Loop::nontemporal);
}

TEST(Machines, OfAnEpycRealignsWhatCmaCopiesSlowly) {
  EXPECT_FALSE(machine("intel_xeon_avx512").realigning_pays());
  EXPECT_TRUE(machine("amd_epyc_zen3").realigning_pays());
}

TEST(Machines, ThatCopyFastInTheKernelPullSooner) {
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::broadcast}) {
    const Ways intel = ways(machine("intel_xeon_avx512"), collective),
               epyc = ways(machine("amd_epyc_zen3"), collective);
    EXPECT_TRUE((epyc.pulls & ~intel.pulls).none()) << name(collective) << ": an EPYC pulls where an Intel does not";
    EXPECT_LT(epyc.pulls.count(), intel.pulls.count()) << name(collective);
  }
  EXPECT_TRUE(ways(machine("intel_xeon_avx512"), Collective::all_reduce).pulls[width(256 << 10)]);
  EXPECT_FALSE(ways(machine("amd_epyc_zen3"), Collective::all_reduce).pulls[width(256 << 10)]);
}

TEST(Ways, FollowTheNumbers) {
  Machine fast, slow;
  fast.pull.gbps.fill(100);
  slow.pull.gbps.fill(0.1);
  fast.pull_huge = slow.pull;
  slow.pull_huge = fast.pull;
  const Ways pulling = ways(fast, Collective::all_to_all), not_pulling = ways(slow, Collective::all_to_all);
  EXPECT_TRUE(pulling.pulls[width(1 << 20)]);
  EXPECT_FALSE(pulling.pulls_huge[width(1 << 20)]);
  EXPECT_FALSE(not_pulling.pulls[width(1 << 20)]);
  EXPECT_TRUE(not_pulling.pulls_huge[width(1 << 20)]);

  Machine far;
  far.hop_us = 10;
  EXPECT_GT(ways(far, Collective::all_reduce).inline_below, ways(Machine{}, Collective::all_reduce).inline_below)
      << "an inline call spares the exchange of flags";
}

TEST(Ways, DoNotDependOnPagesWhereAskingCostsMoreThanTheySpare) {
  Machine machine;
  machine.pull.gbps.fill(0.1);
  machine.pull_huge.gbps.fill(100);
  EXPECT_NE(ways(machine, Collective::all_to_all).pulls, ways(machine, Collective::all_to_all).pulls_huge);
  machine.pull_us = 1000;
  EXPECT_EQ(ways(machine, Collective::all_to_all).pulls[width(64 << 10)],
            ways(machine, Collective::all_to_all).pulls_huge[width(64 << 10)]);
}

TEST(Ways, OfSumsThatPeersCopyGoThroughMemoryWhereCoresShareNoCache) {
  Machine near, apart;
  near.loops.handed_gbps.fill({12, 6});
  apart.loops.handed_gbps.fill({0.3, 0.5});
  for (std::size_t at = 0; at < HandedFootprints::bytes.size(); ++at) {
    EXPECT_EQ(near.loops.table().handed[at], Loop::plain);
    EXPECT_EQ(apart.loops.table().handed[at], Loop::nontemporal);
  }
  EXPECT_TRUE(ways(near, Collective::all_reduce).pulls[width(1 << 20)]);
  EXPECT_FALSE(ways(apart, Collective::all_reduce).pulls[width(1 << 20)]);
  EXPECT_EQ(ways(apart, Collective::reduce_scatter).pulls, ways(near, Collective::reduce_scatter).pulls)
      << "nobody copies these sums";
}

TEST(Ways, OfMessagesGoThroughMemoryWhereCoresShareNoCache) {
  constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(Machine{}.streamed_bytes(), never) << "unmeasured";
  Machine apart;
  apart.far_write.gbps.fill(2);
  apart.streamed_read.gbps.fill(15);
  apart.streamed_write.gbps.fill(25);
  EXPECT_EQ(apart.streamed_bytes(), 4U << 10);
  Machine plain = apart;
  plain.streamed_write.gbps.fill(1);
  EXPECT_TRUE(ways(apart, Collective::broadcast).carries[width(8 << 10)]);
  EXPECT_FALSE(ways(plain, Collective::broadcast).carries[width(8 << 10)]);
  Machine partly = apart;
  for (const std::size_t cached : {0, 1}) partly.far_write.gbps[cached] = 50;  // up to 128 KiB
  EXPECT_GT(partly.streamed_bytes(), 8U << 10);
  EXPECT_LE(partly.streamed_bytes(), 64U << 10);
  partly.far_write.gbps.fill(50);
  EXPECT_EQ(partly.streamed_bytes(), never);
  const auto of = [&](double bytes) { return apart.message_us_per_byte(bytes, 1 << 20, apart.streamed_bytes()); };
  EXPECT_EQ(of(4095).write, apart.far_write.us_per_byte(1 << 20));
  EXPECT_EQ(of(4096).write, apart.streamed_write.us_per_byte(1 << 20));
  EXPECT_EQ(of(4096).read, apart.streamed_read.us_per_byte(1 << 20));
}

TEST(Ways, OfOneRankAndOfBarriersAreNone) {
  EXPECT_EQ(ways(Machine{}, Collective::all_reduce, 1).inline_below, 0U);
  EXPECT_EQ(ways(Machine{}, Collective::barrier).inline_below, 0U);
}

TEST(Ways, OfManyRanksArePredictedToo) {
  const Ways many = ways(Machine{}, Collective::all_reduce, 200);
  EXPECT_GT(many.inline_below, 8U);
  EXPECT_LE(many.inline_below, ways(Machine{}, Collective::all_reduce, 4).inline_below)
      << "every rank reads the input of all";
}

}  // namespace
}  // namespace tutti
