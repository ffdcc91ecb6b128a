// What rings and trees promise about steps, bytes and links.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>

#include "support/schedule_counts.h"

namespace tutti {
namespace {

using testing::blocks_sent;
using testing::built;
using testing::log2_down;
using testing::log_up;
using testing::messages_per_step;
using testing::supported;

constexpr auto all_reduce = Collective::all_reduce;
constexpr Collective collectives[] = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather};

/// Blocks over each link: from, to → how many.
std::map<std::pair<Rank, Rank>, int> loads(const Schedule& schedule) {
  std::map<std::pair<Rank, Rank>, int> all;
  for (const Transfer& t : schedule.transfers())
    if (t.from != t.to) ++all[{t.from, t.to}];
  return all;
}

TEST(BidirectionalRing, FillsBothDirectionsOfEveryLinkAlike) {
  for (int n = 3; n <= 64; ++n)
    for (const Collective collective : collectives) {
      const Schedule ring = built("bidirectional_ring", collective, n);
      const int rounds = collective == all_reduce ? 2 : 1;
      EXPECT_EQ(ring.steps(), rounds * (n - 1));
      EXPECT_EQ(ring.parts(), collective == all_reduce ? 2 * n : 2);
      EXPECT_LE(ring.scratch_groups(), collective == Collective::reduce_scatter ? 2 : 0);
      const auto links = loads(ring);
      EXPECT_EQ(links.size(), 2u * static_cast<unsigned>(n));
      for (const auto& [link, blocks] : links) {
        EXPECT_TRUE((link.first + 1) % n == link.second || (link.second + 1) % n == link.first);
        EXPECT_EQ(blocks, rounds * (n - 1)) << n;
      }
    }
}

TEST(MultiRing, SharesTheDataBetweenLinksOfItsOwn) {
  int seen = 0;
  for (const int rings : {2, 4})
    for (int n = 2; n <= 64; ++n)
      for (const Collective collective : collectives) {
        const std::string name = "multi_ring/" + std::to_string(rings);
        int strides = 0;
        for (int stride = 1; 2 * stride <= n; ++stride) strides += std::gcd(stride, n) == 1;
        ASSERT_EQ(supported(name, collective, n), strides >= rings) << n;
        if (strides < rings) continue;
        ++seen;
        const Schedule ring = built(name, collective, n);
        const int rounds = collective == all_reduce ? 2 : 1;
        EXPECT_EQ(ring.steps(), rounds * (n - 1));
        EXPECT_EQ(ring.parts(), collective == all_reduce ? rings * n : rings);
        EXPECT_EQ(messages_per_step(ring), rings);
        EXPECT_LE(ring.scratch_groups(), collective == Collective::reduce_scatter ? 2 : 0);
        const auto links = loads(ring);
        EXPECT_EQ(static_cast<int>(links.size()), rings * n);
        for (const auto& [link, blocks] : links) {
          EXPECT_EQ(blocks, rounds * (n - 1)) << n;
          EXPECT_FALSE(links.contains({link.second, link.first})) << n;
        }
      }
  EXPECT_GT(seen, 100);
}

TEST(DoubleTree, AllReducesInLogarithmicLatencyAtTwiceTheVolume) {
  for (const int chunks : {2, 8, 16})
    for (int n = 2; n <= 64; ++n) {
      const Schedule tree = built("double_tree/" + std::to_string(chunks), all_reduce, n);
      EXPECT_EQ(tree.steps(), 2 * log2_down(n) + chunks / 2 - 1) << n;
      EXPECT_EQ(tree.parts(), chunks);
      EXPECT_LE(blocks_sent(tree), 2 * chunks) << "of chunks";
      EXPECT_LE(messages_per_step(tree), 4);
      EXPECT_EQ(tree.scratch_groups(), 0);
    }
}

TEST(DoubleTree, AddsUpHalfTheDataAtMostOnEachRank) {
  for (int n = 2; n <= 64; ++n) {
    std::vector<std::array<bool, 2>> adds(static_cast<std::size_t>(n));
    const Schedule tree = built("double_tree", all_reduce, n);
    for (const Transfer& t : tree.transfers())
      if (t.kind == Kind::reduce)
        adds[static_cast<std::size_t>(t.to)][static_cast<std::size_t>(t.dst.block % 2)] = true;
    for (const auto& [even, odd] : adds) EXPECT_FALSE(even && odd) << n;
  }
}

TEST(ReduceBroadcast, SendsTheFewestMessagesThereAre) {
  for (const int radix : {2, 4, 8})
    for (int n = 2; n <= 64; ++n) {
      const Schedule tree = built("reduce_broadcast/" + std::to_string(radix), all_reduce, n);
      EXPECT_EQ(tree.steps(), 2 * log_up(n, radix)) << radix << ", " << n;
      int sent = 0;
      for (const auto& [link, blocks] : loads(tree)) sent += blocks;
      EXPECT_EQ(sent, 2 * (n - 1));
      EXPECT_LE(messages_per_step(tree), radix - 1);
      EXPECT_LE(blocks_sent(tree), (radix - 1) * log_up(n, radix));
    }
}

}  // namespace
}  // namespace tutti
