// However they come and whoever cannot listen, each rank has a place, nobody too many below it, and all are near the
// root.
#include "bootstrap/bootstrap_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <numeric>
#include <random>

#include "support/seeds.h"

namespace tutti::bootstrap {
namespace {

/// Ranks come in `order`; those asked answer a little later, some that they cannot.
struct Arrivals {
  Arrivals(int fan_out, std::vector<int> order_in, std::uint64_t seed, double refuses)
      : tree(fan_out), order(std::move(order_in)), random(seed) {
    const int ranks = static_cast<int>(order.size());
    std::deque<int> waiting;
    for (const int rank : order) {
      if (tree.arrive(rank, ranks)) asked.push_back(rank);
      waiting.push_back(rank);
      settle(waiting, refuses);
    }
    while (!waiting.empty()) settle(waiting, refuses);
  }
  void settle(std::deque<int>& waiting, double refuses) {
    std::deque<int> again;
    for (const int rank : waiting) {
      const auto parent = tree.place(rank);
      if (!parent) {
        again.push_back(rank);
        continue;
      }
      if (*parent != Tree::root) {
        EXPECT_EQ(tree.address(*parent).port, *parent + 1) << "below one who listens";
      }
      if (std::ranges::find(asked, rank) != asked.end()) unanswered.push_back(rank);
    }
    waiting = std::move(again);
    while (!unanswered.empty() && (random() % 2 == 0 || !waiting.empty())) {
      const int rank = unanswered.front();
      unanswered.pop_front();
      const bool no = static_cast<double>(random() % 1000) < refuses * 1000;
      tree.listens(rank, {.host = no ? "" : "10.0.0.1", .port = static_cast<std::uint16_t>(rank + 1)});
    }
  }
  int depth_of(int rank) const {
    int depth = 1;
    for (int at = tree.parent(rank); at != Tree::root; at = tree.parent(at)) ++depth;
    return depth;
  }
  std::vector<int> children() const {  // of each rank, and of the root at the end
    std::vector<int> count(order.size() + 1);
    for (const int rank : order) {
      const int parent = tree.parent(rank);
      ++count[parent == Tree::root ? order.size() : static_cast<std::size_t>(parent)];
    }
    return count;
  }
  Tree tree;
  std::vector<int> order;
  std::mt19937_64 random;
  std::vector<int> asked;
  std::deque<int> unanswered;
};

std::vector<int> shuffled(int ranks, std::uint64_t seed) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  std::ranges::shuffle(order, random);
  return order;
}

TEST(Tree, FewRanksAreAStar) {
  const Arrivals few(16, shuffled(16, 1), 1, 0);
  EXPECT_TRUE(few.asked.empty()) << "nobody opens a port";
  EXPECT_EQ(few.tree.depth(), 1);
  EXPECT_EQ(few.tree.widest(), 16);
}

TEST(Tree, IsAsFlatAsItsFanOutAllows) {
  for (const int ranks : {17, 256, 272, 1'000, 4'096, 65'535})
    for (const int fan_out : {2, 16}) {
      const Arrivals all(fan_out, shuffled(ranks, 7), 7, 0);
      EXPECT_LE(all.tree.widest(), fan_out);
      EXPECT_LE(all.tree.depth(), 1 + static_cast<int>(std::ceil(std::log(ranks) / std::log(fan_out)))) << ranks;
      EXPECT_LE(static_cast<int>(all.asked.size()), (ranks - 1) / fan_out) << "no more ports than are needed";
    }
}

TEST(Tree, EveryRankHasAPlaceWhoeverListens) {
  for (const std::uint64_t seed : seeds(300)) {
    SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int ranks = 1 + static_cast<int>(random() % 60);
    const int fan_out = 1 + static_cast<int>(random() % 5);
    const double refuses = std::array{0.0, 0.3, 1.0}[random() % 3];
    const Arrivals all(fan_out, shuffled(ranks, seed), seed, refuses);
    int depth = 0, widest = 0;
    for (const int rank : all.order) depth = std::max(depth, all.depth_of(rank));
    const auto children = all.children();
    for (std::size_t rank = 0; rank + 1 < children.size(); ++rank) EXPECT_LE(children[rank], fan_out);
    widest = *std::ranges::max_element(children);
    EXPECT_EQ(depth, all.tree.depth());
    EXPECT_EQ(widest, all.tree.widest());
    if (refuses == 1.0) {
      EXPECT_EQ(depth, 1) << "the root takes all when nobody else can";
    }
    if (refuses == 0.0) {
      EXPECT_LE(widest, fan_out);
    }
  }
}

TEST(Tree, WhoReachesNobodyHangsBelowTheRoot) {
  Tree tree(1);
  for (const int rank : {0, 1}) tree.arrive(rank, 3);
  EXPECT_EQ(tree.place(0), Tree::root);
  EXPECT_FALSE(tree.place(1)) << "0 has not said where it listens";
  tree.listens(2, {"10.0.0.1", 9});  // was not asked
  EXPECT_FALSE(tree.place(1));
  tree.listens(0, {"10.0.0.1", 5});
  EXPECT_EQ(tree.place(1), 0);
  tree.adopt(1);
  EXPECT_EQ(tree.parent(1), Tree::root);
  EXPECT_EQ(tree.widest(), 2);
}

}  // namespace
}  // namespace tutti::bootstrap
