// The same library on different machines: accesses and loops follow from the numbers of the machine.
#include "choice/access_table.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>
#include <string_view>

#include "choice/choice.h"
#include "tune/machine_file.h"

namespace tutti {
namespace {

constexpr std::size_t large = 2;  // of LoopFootprints

Machine machine(std::string_view name) {
  const auto read = read_machine_file(TUTTI_TEST_MACHINES "/speeds/" + std::string(name));
  EXPECT_TRUE(read) << (read ? "" : read.error().what);
  return read ? *read : Machine{};
}

AccessTable access_table(const Machine& machine, Collective collective, int ranks = 2) {
  Envelopes envelopes;
  const auto make = [&](const Shape& shape, Access access, const Machine& on, const Conditions& conditions) {
    return envelopes.of(shape, access, "", on, conditions);
  };
  return predict_access_table({.collective = collective, .ranks = ranks}, machine, {.cores = ranks}, /*ordinary=*/true,
                              make);
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
    const AccessTable intel = access_table(machine("intel_xeon_avx512"), collective),
                      epyc = access_table(machine("amd_epyc_zen3"), collective);
    EXPECT_TRUE((epyc.pulls & ~intel.pulls).none()) << name(collective) << ": an EPYC pulls where an Intel does not";
    EXPECT_LT(epyc.pulls.count(), intel.pulls.count()) << name(collective);
  }
  EXPECT_TRUE(access_table(machine("intel_xeon_avx512"), Collective::all_reduce).pulls[width(256 << 10)]);
  EXPECT_FALSE(access_table(machine("amd_epyc_zen3"), Collective::all_reduce).pulls[width(256 << 10)]);
}

TEST(AccessTable, FollowTheNumbers) {
  Machine fast, slow;
  fast.pull.together.gbps.fill(100);
  slow.pull.together.gbps.fill(0.1);
  fast.pull.huge_together = slow.pull.together;
  slow.pull.huge_together = fast.pull.together;
  const AccessTable pulling = access_table(fast, Collective::all_to_all),
                    not_pulling = access_table(slow, Collective::all_to_all);
  EXPECT_TRUE(pulling.pulls[width(1 << 20)]);
  EXPECT_FALSE(pulling.pulls_huge[width(1 << 20)]);
  EXPECT_FALSE(not_pulling.pulls[width(1 << 20)]);
  EXPECT_TRUE(not_pulling.pulls_huge[width(1 << 20)]);

  Machine far;
  far.hop_us = 10;
  EXPECT_GT(access_table(far, Collective::all_reduce).inline_below,
            access_table(Machine{}, Collective::all_reduce).inline_below)
      << "an inline call spares the exchange of flags";
}

TEST(AccessTable, DoNotDependOnPagesWhereAskingCostsMoreThanTheySpare) {
  Machine machine;
  machine.pull.together.gbps.fill(0.1);
  machine.pull.huge_together.gbps.fill(100);
  EXPECT_NE(access_table(machine, Collective::all_to_all).pulls,
            access_table(machine, Collective::all_to_all).pulls_huge);
  machine.pull.call_us = 1000;
  EXPECT_EQ(access_table(machine, Collective::all_to_all).pulls[width(64 << 10)],
            access_table(machine, Collective::all_to_all).pulls_huge[width(64 << 10)]);
}

TEST(AccessTable, OfSumsThatPeersCopyGoThroughMemoryWhereCoresShareNoCache) {
  Machine near, apart;
  near.loops.pulled_gbps.fill({12, 6});
  apart.loops.pulled_gbps.fill({0.3, 0.5});
  for (std::size_t at = 0; at < PulledFootprints::bytes.size(); ++at) {
    EXPECT_EQ(near.loops.table().pulled[at], Loop::plain);
    EXPECT_EQ(apart.loops.table().pulled[at], Loop::nontemporal);
  }
  EXPECT_TRUE(access_table(near, Collective::all_reduce).pulls[width(1 << 20)]);
  EXPECT_FALSE(access_table(apart, Collective::all_reduce).pulls[width(1 << 20)]);
  EXPECT_EQ(access_table(apart, Collective::reduce_scatter).pulls, access_table(near, Collective::reduce_scatter).pulls)
      << "nobody copies these sums";
}

TEST(AccessTable, OfMessagesGoThroughMemoryWhereCoresShareNoCache) {
  constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(Machine{}.far.streamed_bytes(), never) << "unmeasured";
  Machine apart;
  apart.far.write.gbps.fill(2);
  apart.far.streamed_read.gbps.fill(15);
  apart.far.streamed_write.gbps.fill(25);
  EXPECT_EQ(apart.far.streamed_bytes(), 4U << 10);
  Machine plain = apart;
  plain.far.streamed_write.gbps.fill(1);
  EXPECT_TRUE(access_table(apart, Collective::broadcast).carries[width(8 << 10)]);
  EXPECT_FALSE(access_table(plain, Collective::broadcast).carries[width(8 << 10)]);
  Machine partly = apart;
  for (const std::size_t cached : {0, 1}) partly.far.write.gbps[cached] = 50;  // up to 128 KiB
  EXPECT_GT(partly.far.streamed_bytes(), 8U << 10);
  EXPECT_LE(partly.far.streamed_bytes(), 64U << 10);
  partly.far.write.gbps.fill(50);
  EXPECT_EQ(partly.far.streamed_bytes(), never);
  const auto of = [&](double bytes) {
    return apart.far.message_us_per_byte(bytes, 1 << 20, apart.far.streamed_bytes());
  };
  EXPECT_EQ(of(4095).write, apart.far.write.us_per_byte(1 << 20));
  EXPECT_EQ(of(4096).write, apart.far.streamed_write.us_per_byte(1 << 20));
  EXPECT_EQ(of(4096).read, apart.far.streamed_read.us_per_byte(1 << 20));
}

TEST(AccessTable, OfOneRankAndOfBarriersAreNone) {
  EXPECT_EQ(access_table(Machine{}, Collective::all_reduce, 1).inline_below, 0U);
  EXPECT_EQ(access_table(Machine{}, Collective::barrier).inline_below, 0U);
}

TEST(AccessTable, OfManyRanksArePredictedToo) {
  const AccessTable many = access_table(Machine{}, Collective::all_reduce, 200);
  EXPECT_GT(many.inline_below, 8U);
  EXPECT_LE(many.inline_below, access_table(Machine{}, Collective::all_reduce, 4).inline_below)
      << "every rank reads the input of all";
}

}  // namespace
}  // namespace tutti
