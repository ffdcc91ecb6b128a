// Every algorithm, between ranks in any order: is it still right, and do its plans still run?
#include "algorithms/positions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "analysis/proof/check.h"
#include "plan/lower.h"
#include "plan/verify.h"
#include "support/shapes.h"

namespace tutti {
namespace {

using testing::for_every_algorithm;
using testing::text;

std::vector<Rank> shuffled(int ranks, unsigned seed) {
  std::vector<Rank> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(seed);
  std::ranges::shuffle(order, random);
  return order;
}

/// Ranks of two hosts, numbered in turn.
Level alternating(int ranks) {
  Level hosts;
  for (Rank rank = 0; rank < ranks; ++rank) hosts.push_back(rank % 2);
  return hosts;
}

class AnyOrder : public ::testing::TestWithParam<int> {};

TEST_P(AnyOrder, IsRight) {
  const int ranks = GetParam();
  for (const unsigned seed : {1u, 2u})
    for (const bool hosts : {false, true})
      for (const Algorithm& algorithm : algorithms())
        for (Shape shape : testing::shapes(ranks)) {
          shape.order = shuffled(ranks, seed);
          for (unsigned ring = 0; ring < 3; ++ring) shape.rings.push_back(shuffled(ranks, 3 * seed + ring));
          if (hosts) shape.levels = {alternating(ranks)};
          if (!algorithm.supports(shape)) continue;
          const Schedule schedule = algorithm.build(shape);
          const auto meaning = verify(schedule);
          ASSERT_TRUE(meaning) << text(algorithm, shape) << ": " << meaning.error().text();
          EXPECT_TRUE(meaning->same_bits) << text(algorithm, shape);
          for (const Access access : {Access::in_line, Access::mapped, Access::cma, Access::slots})
            if (serves(algorithm, shape, access)) {
              EXPECT_TRUE(lowers_to(schedule, access)) << text(algorithm, shape);
            }
        }
}

INSTANTIATE_TEST_SUITE_P(Ranks, AnyOrder, ::testing::Values(1, 2, 3, 4, 5, 6, 8, 9),
                         ::testing::PrintToStringParamName());

TEST(Positions, FollowTheOrder) {
  const Shape shape{
      .collective = Collective::broadcast, .ranks = 4, .root = 1, .levels = {{0, 1, 0, 1}}, .order = {0, 2, 1, 3}};
  const Shape seen = positions_of(shape);
  EXPECT_EQ(seen.root, 2);
  EXPECT_EQ(seen.levels, (std::vector<Level>{{0, 0, 1, 1}}));
  EXPECT_TRUE(seen.order.empty());
}

TEST(Positions, NumberGroupsByTheirFirstPositions) {
  const Shape shape{.ranks = 4, .levels = {{0, 1, 0, 1}}, .order = {3, 1, 0, 2}};
  EXPECT_EQ(positions_of(shape).levels, (std::vector<Level>{{0, 0, 1, 1}}));
}

TEST(Positions, TranslateRings) {
  const Shape shape{.ranks = 4, .order = {0, 2, 1, 3}, .rings = {{0, 2, 1, 3}, {3, 0, 1, 2}}};
  EXPECT_EQ(positions_of(shape).rings, (std::vector<std::vector<Rank>>{{0, 1, 2, 3}, {3, 0, 2, 1}}));
}

TEST(Positions, KeepRingsOfTheMachine) {
  for (const bool ordered : {false, true}) {
    Shape shape{.collective = Collective::all_gather, .ranks = 7};
    if (ordered) shape.order = shuffled(7, 1);
    for (const unsigned seed : {2u, 3u, 4u}) shape.rings.push_back(shuffled(7, seed));
    for (const auto& [name, rings] : {std::pair("multi_ring/0", 3u), std::pair("multi_ring/2", 2u)}) {
      std::set<std::pair<Rank, Rank>> links, used;
      for (std::size_t ring = 0; ring < rings; ++ring)
        for (std::size_t i = 0; i < 7; ++i) links.insert({shape.rings[ring][i], shape.rings[ring][(i + 1) % 7]});
      const Schedule schedule = find_algorithm(name, shape)->build(shape);
      for (const Transfer& transfer : schedule.transfers())
        if (transfer.from != transfer.to) used.insert({transfer.from, transfer.to});
      EXPECT_EQ(used, links) << name;
    }
  }
}

TEST(Positions, KeepARingBetweenNeighbours) {
  const Shape shape{.collective = Collective::all_gather, .ranks = 4, .order = {0, 2, 1, 3}};
  const Schedule ring = find_algorithm("ring", shape)->build(shape);
  for (const Transfer& transfer : ring.transfers()) {
    if (transfer.from == transfer.to) continue;
    const auto at = [&](Rank rank) { return std::ranges::find(shape.order, rank) - shape.order.begin(); };
    EXPECT_EQ((at(transfer.from) + 1) % 4, at(transfer.to) % 4);
  }
}

}  // namespace
}  // namespace tutti
