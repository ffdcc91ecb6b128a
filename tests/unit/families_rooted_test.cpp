// What algorithms from and to a root promise about steps and bytes.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>

#include "algorithms/spread.h"
#include "plan/verify.h"
#include "support/schedule_counts.h"

namespace tutti {
namespace {

using testing::blocks_per_message;
using testing::blocks_sent;
using testing::built;
using testing::log2_down;
using testing::log2_up;
using testing::log_up;
using testing::messages_per_step;

constexpr auto broadcast = Collective::broadcast;
constexpr auto reduce = Collective::reduce;
constexpr auto gather = Collective::gather;
constexpr auto scatter = Collective::scatter;

/// Calls test(name, n, root, value) for the members of a family, and for every number of ranks.
template <class Test>
void for_each_member(const Family& family, Test test) {
  for (const int value : family.values)
    for (int n = 2; n <= 64; ++n) test(fmt::format("{}/{}", family.name, value), n, n / 3, value);
}

/// Blocks that cross links, of all ranks.
int blocks_moved(const Schedule& schedule) {
  return static_cast<int>(std::ranges::count_if(schedule.transfers(), [](auto& t) { return t.from != t.to; }));
}

/// Messages that the busiest rank receives in one step.
int received_per_step(const Schedule& schedule) {
  std::map<std::pair<int, Rank>, std::set<Rank>> from;
  std::size_t most = 0;
  for (const Transfer& t : schedule.transfers()) {
    if (t.from == t.to) continue;
    auto& peers = from[{t.step, t.to}];
    peers.insert(t.from);
    most = std::max(most, peers.size());
  }
  return static_cast<int>(most);
}

TEST(KNomial, TakesLogarithmicSteps) {
  for_each_member(algorithm::k_nomial, [](const std::string& name, int n, Rank root, int radix) {
    for (const Collective collective : {broadcast, reduce, gather, scatter}) {
      const Schedule tree = built(name, collective, n, root);
      EXPECT_EQ(tree.steps(), log_up(n, radix)) << name << n;
      EXPECT_LE(messages_per_step(tree), radix - 1) << name << n;
      EXPECT_LE(received_per_step(tree), radix - 1) << name << n;
    }
  });
}

TEST(KNomial, SendsNoMoreThanItMust) {
  for_each_member(algorithm::k_nomial, [](const std::string& name, int n, Rank root, int radix) {
    EXPECT_LE(blocks_sent(built(name, broadcast, n, root)), (radix - 1) * log_up(n, radix));
    EXPECT_EQ(blocks_sent(built(name, reduce, n, root)), 1);
    EXPECT_EQ(blocks_sent(built(name, scatter, n, root)), n - 1) << "the root";
    EXPECT_LT(built(name, scatter, n, root).scratch_groups(), n);
    EXPECT_EQ(blocks_moved(built(name, gather, n, root)), blocks_moved(built(name, scatter, n, root)));
  });
}

TEST(Chain, KeepsEachLinkBusy) {
  for_each_member(algorithm::chain, [](const std::string& name, int n, Rank root, int chunks) {
    for (const Collective collective : {broadcast, reduce}) {
      const Schedule chain = built(name, collective, n, root);
      EXPECT_EQ(chain.steps(), n - 2 + chunks) << name << n;
      EXPECT_EQ(chain.parts(), chunks);
      EXPECT_EQ(blocks_sent(chain), chunks);
      EXPECT_EQ(messages_per_step(chain), 1);
      EXPECT_EQ(received_per_step(chain), 1);
      for (const Transfer& t : chain.transfers())
        EXPECT_TRUE(t.from == t.to || (t.from + 1) % n == t.to || (t.to + 1) % n == t.from) << "neighbours alone";
    }
  });
}

TEST(BinaryTree, TakesLogarithmicStepsAndOneForEachChunk) {
  for_each_member(algorithm::binary_tree, [](const std::string& name, int n, Rank root, int chunks) {
    const Schedule down = built(name, broadcast, n, root), up = built(name, reduce, n, root);
    EXPECT_EQ(down.steps(), log2_down(n) + chunks - 1) << name << n;
    EXPECT_EQ(up.steps(), down.steps());
    EXPECT_EQ(blocks_sent(down), chunks * std::min(n - 1, 2)) << "to two children";
    EXPECT_EQ(blocks_sent(up), chunks);
    EXPECT_LE(messages_per_step(down), 2);
    EXPECT_EQ(messages_per_step(up), 1);
  });
}

TEST(SplitBinaryTree, SendsHalfDownEachSideAndAcross) {
  for_each_member(algorithm::split_binary_tree, [](const std::string& name, int n, Rank root, int chunks) {
    const Schedule down = built(name, broadcast, n, root), up = built(name, reduce, n, root);
    for (const Schedule& tree : {down, up}) {
      EXPECT_EQ(tree.steps(), log2_down(n) + chunks / 2) << name << n;
      EXPECT_EQ(tree.parts(), chunks);
      EXPECT_EQ(blocks_moved(tree), chunks * (n - 1));
    }
    EXPECT_LE(blocks_sent(down), chunks * 3 / 2) << name << n;
    EXPECT_EQ(blocks_sent(up), chunks);
    EXPECT_LE(messages_per_step(down), 2);
    EXPECT_EQ(messages_per_step(up), 1);
  });
}

TEST(DoubleTree, HasALeafWhereTheOtherHasAnInnerNode) {
  for (int n = 1; n <= 200; ++n) {
    const auto trees = double_tree(n);
    std::array<std::vector<int>, 2> children;  // of each tree, by node: how many
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(trees[i].height(), log2_down(n)) << n;
      children[i].resize(static_cast<std::size_t>(n));
      for (int v = 0; v < n; ++v)
        if (trees[i].parent(v) != Tree::none) ++children[i][static_cast<std::size_t>(trees[i].parent(v))];
    }
    for (std::size_t v = 0; v < static_cast<std::size_t>(n); ++v) {
      const int first = children[0][v], second = children[1][v];
      EXPECT_TRUE(first == 0 || second == 0) << v << " of " << n;
      EXPECT_LE(first + second, 2) << v << " of " << n;
    }
  }
}

TEST(DoubleTree, SendsEachChunkOnce) {
  for_each_member(algorithm::double_tree, [](const std::string& name, int n, Rank root, int chunks) {
    for (const Collective collective : {broadcast, reduce}) {
      const Schedule trees = built(name, collective, n, root);
      EXPECT_EQ(trees.steps(), log2_down(n - 1) + chunks / 2) << name << n;
      EXPECT_EQ(trees.parts(), chunks);
      EXPECT_LE(blocks_sent(trees), chunks) << name << n;
      EXPECT_EQ(blocks_moved(trees), chunks * (n - 1));
      EXPECT_LE(messages_per_step(trees), 2);
      EXPECT_LE(received_per_step(trees), 2);
    }
  });
}

TEST(ScatterAllGather, TakesLogarithmicStepsAtTwiceTheVolume) {
  for (int n = 2; n <= 64; ++n)
    for (const auto& [name, collective] :
         {std::pair{"scatter_all_gather", broadcast}, {"reduce_scatter_gather", reduce}}) {
      const Schedule halves = built(name, collective, n, n / 3);
      EXPECT_EQ(halves.steps(), 2 * log2_up(n)) << name << n;
      EXPECT_EQ(halves.parts(), n);
      EXPECT_EQ(blocks_sent(halves), collective == reduce ? n : 2 * (n - 1)) << name << n << ", of n-th parts";
      EXPECT_EQ(blocks_moved(halves), n * (n - 1)) << "each part once to each";
      EXPECT_EQ(messages_per_step(halves), 1);
      EXPECT_EQ(received_per_step(halves), 1);
    }
}

TEST(ScatterRingAllGather, GoesAroundOnce) {
  for (int n = 2; n <= 64; ++n)
    for (const auto& [name, collective] :
         {std::pair{"scatter_ring_all_gather", broadcast}, {"ring_reduce_scatter_gather", reduce}}) {
      const Schedule halves = built(name, collective, n, n / 3);
      EXPECT_EQ(halves.steps(), log2_up(n) + n - 1) << name << n;
      EXPECT_EQ(blocks_sent(halves), collective == reduce ? n : 2 * (n - 1)) << name << n << ", of n-th parts";
      EXPECT_EQ(blocks_moved(halves), n * (n - 1)) << "each part once to each";
      EXPECT_EQ(messages_per_step(halves), 1);
      EXPECT_EQ(received_per_step(halves), 1);
    }
}

TEST(CirculantBroadcast, TakesTheFewestRoundsThereCanBe) {
  for_each_member(algorithm::circulant_broadcast, [](const std::string& name, int n, Rank root, int blocks) {
    for (const Collective collective : {broadcast, reduce}) {
      const Schedule rounds = built(name, collective, n, root);
      EXPECT_EQ(rounds.steps(), log2_up(n) + blocks - 1) << name << n;
      EXPECT_EQ(rounds.parts(), blocks);
      EXPECT_EQ(blocks_moved(rounds), blocks * (n - 1)) << "each block once to each";
      EXPECT_EQ(messages_per_step(rounds), 1);
      EXPECT_EQ(received_per_step(rounds), 1);
      EXPECT_LE(blocks_per_message(rounds), 1);
    }
  });
}

TEST(CirculantBroadcast, DoesSoForManyRanksAndBlocks) {
  for (const int n : {100, 127, 128, 129, 500, 1000})
    for (const int blocks : {1, 2, 5, 9, 10, 11, 40}) {
      const Shape shape{.collective = broadcast, .ranks = n, .root = n / 2};
      const Schedule rounds = algorithm::circulant_broadcast.build(shape, blocks);
      EXPECT_EQ(rounds.steps(), log2_up(n) + blocks - 1) << n << " ranks, " << blocks << " blocks";
      const auto meaning = verify(rounds);
      EXPECT_TRUE(meaning) << meaning.error().text();
    }
}

TEST(HierarchicalTree, CrossesEachGroupOnce) {
  for (const int size : {2, 4, 8})
    for (int n = 2 * size; n <= 64; n += size)
      for (const Collective collective : {broadcast, reduce}) {
        const Schedule tree = built(fmt::format("hierarchical_tree/{}", size), collective, n, n / 3);
        EXPECT_EQ(tree.steps(), log2_up(n / size) + log2_up(size));
        EXPECT_EQ(messages_per_step(tree), 1);
        EXPECT_EQ(std::ranges::count_if(tree.transfers(), [&](auto& t) { return t.from / size != t.to / size; }),
                  n / size - 1);
      }
  EXPECT_FALSE(testing::supported("hierarchical_tree", broadcast, 7));
  EXPECT_FALSE(testing::supported("hierarchical_tree/4", broadcast, 4));
}

// Hosts of three, one and four ranks, dealt out; on them two sockets each, where there are so many.
TEST(HierarchicalTree, FollowsTheInnermostLevel) {
  const Level hosts{0, 1, 2, 0, 2, 0, 2, 2}, sockets{0, 1, 2, 0, 2, 3, 4, 4};
  for (const bool fine : {false, true})
    for (const Collective collective : {broadcast, reduce})
      for (Rank root = 0; root < 8; ++root) {
        Shape shape{.collective = collective, .ranks = 8, .root = root, .levels = {hosts}};
        if (fine) shape.levels.push_back(sockets);
        const Schedule tree = find_algorithm("hierarchical_tree", shape)->build(shape);
        const auto meaning = verify(tree);
        ASSERT_TRUE(meaning) << root << ": " << meaning.error().text();
        const Level& level = fine ? sockets : hosts;
        const auto in = [&](Rank rank) { return level[static_cast<std::size_t>(rank)]; };
        EXPECT_EQ(std::ranges::count_if(tree.transfers(), [&](auto& t) { return in(t.from) != in(t.to); }),
                  fine ? 4 : 2);
      }
}

TEST(Linear, MeetsOneRankAtATime) {
  for (int n = 2; n <= 64; ++n)
    for (const Collective collective : {broadcast, reduce, gather, scatter}) {
      const Schedule star = built("linear", collective, n, n / 3);
      EXPECT_EQ(star.steps(), n - 1);
      EXPECT_EQ(blocks_moved(star), n - 1);
      EXPECT_EQ(messages_per_step(star), 1);
      EXPECT_EQ(received_per_step(star), 1);
      EXPECT_EQ(star.scratch_groups(), 0);
    }
}

}  // namespace
}  // namespace tutti
