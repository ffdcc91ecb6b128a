// One rank's plan from its own transfers is the plan that the whole schedule gives that rank.
#include "choice/rank_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/limits.h"
#include "plan/counts.h"
#include "plan/lower.h"
#include "support/environment.h"
#include "support/random.h"
#include "support/shapes.h"

namespace tutti {
namespace {

using testing::environment;
using testing::Random;
using testing::test_seed;
using testing::text;

std::vector<Rank> shuffled(int ranks, Random& random) {
  std::vector<Rank> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  for (int i = ranks - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(random.below(i + 1))]);
  return order;
}

/// Levels of hosts and of their halves, whose groups may differ in size; sometimes in an order of their own, sometimes
/// with rings, of which some may have links in common.
Shape on_machine(Shape shape, Random& random) {
  const int kind = random.below(4);
  if (kind > 0 && shape.ranks > 3) {
    const int host = random.between(2, std::max(2, shape.ranks / 2));
    Level hosts, halves;
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
      const int in_turn = shape.ranks / host > 1 ? rank % (shape.ranks / host) : 0;
      const int group = kind == 1 ? in_turn : rank / host;
      hosts.push_back(group);
      halves.push_back(2 * group + (rank % host) * 2 / host);
    }
    shape.levels = {hosts};
    if (kind == 3) shape.levels.push_back(halves);
  }
  if (random.chance(30)) shape.order = shuffled(shape.ranks, random);
  for (int ring = random.chance(50) ? random.between(1, 8) : 0; ring > 0; --ring) {
    if (!shape.rings.empty() && random.chance(40)) {
      shape.rings.push_back(shape.rings.back());
      std::vector<Rank>& last = shape.rings.back();
      std::rotate(last.begin(), last.begin() + random.below(shape.ranks), last.end());
    } else {
      shape.rings.push_back(shuffled(shape.ranks, random));
    }
  }
  return shape;
}

std::string what(const Algorithm& algorithm, const Shape& shape, Rank rank, Access access) {
  return text(algorithm, shape) + ", rank " + std::to_string(rank) + " by " + std::string(name(access)) + ", " +
         std::to_string(shape.levels.size()) + " levels" + (shape.order.empty() ? "" : ", ordered") + ", " +
         std::to_string(shape.rings.size()) + " rings";
}

/// Intermediate results of a long reduction are in the last group of scratch, behind all that the schedule uses.
std::vector<Place> with_chain_marked(const Plan& plan, bool chained) {
  constexpr std::uint32_t mark = 1u << 31;
  std::vector<Place> places = plan.places;
  const auto first = static_cast<std::uint32_t>((plan.scratch_groups - 1) * plan.parts);
  for (Place& place : places)
    if (chained && place.where == Where::scratch && place.block >= first) place.block = mark + (place.block - first);
  return places;
}

void expect_same(const Algorithm& algorithm, const Shape& shape, const Schedule& whole, Rank rank, Access access) {
  const Plan one = rank_plan(algorithm, shape, rank, access), of_whole = lower(whole, rank, access);
  const std::string where = what(algorithm, shape, rank, access);
  ASSERT_EQ(one.actions.size(), of_whole.actions.size()) << where;
  EXPECT_TRUE(one.actions == of_whole.actions) << where;
  Shape own = shape;
  own.only = rank;
  EXPECT_TRUE(with_chain_marked(one, algorithm.build(own).chained()) == with_chain_marked(of_whole, whole.chained()))
      << where;
  EXPECT_EQ(one.parts, of_whole.parts) << where;
  EXPECT_EQ(one.root, of_whole.root) << where;
  EXPECT_EQ(one.direct, of_whole.direct) << where;
  EXPECT_LE(one.scratch_groups, of_whole.scratch_groups) << where;
  EXPECT_GE(one.items_max, of_whole.items_max) << where;
  EXPECT_LE(one.items_max, 2 * of_whole.items_max) << where;
}

class RankPlan : public ::testing::TestWithParam<int> {};

TEST_P(RankPlan, IsThatOfTheWholeSchedule) {
  SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(test_seed()));
  Random random(test_seed() + static_cast<std::uint64_t>(GetParam()));
  const int ranks = GetParam();
  // Of many ranks, a schedule has millions of transfers.
  const int percent = ranks <= 64 ? 100 : ranks <= 256 ? 20 : 4;
  for (const Shape& plain : testing::shapes(ranks))
    for (const Algorithm& algorithm : algorithms()) {
      const Shape shape = on_machine(plain, random);
      if (!random.chance(percent) || !algorithm.supports(shape) || !costs_one_rank(algorithm, Access::slots)) continue;
      const Schedule whole = algorithm.build(shape);
      for (const Access access : {Access::slots, Access::in_line})
        for (const Rank rank : {random.below(ranks), random.below(ranks)})
          if (serves(algorithm, shape, access)) expect_same(algorithm, shape, whole, rank, access);
    }
}

std::vector<int> numbers_of_ranks() {
  std::vector<int> all(64);
  std::iota(all.begin(), all.end(), 1);
  all.insert(all.end(), {97, 128, 255, 600, 1000, 1024});
  std::erase_if(all, [limit = environment("TUTTI_TEST_RANKS", 1024)](int ranks) { return ranks > limit; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ranks, RankPlan, ::testing::ValuesIn(numbers_of_ranks()), ::testing::PrintToStringParamName());

// What is left out is left out for a reason: one description of all ranks' work at once.
TEST(RankPlans, OfNearlyAllFamiliesCostOneRank) {
  std::vector<std::string_view> whole;
  for (const Family* family : families())
    if (family->items == nullptr) whole.push_back(family->name);
  EXPECT_EQ(whole, (std::vector<std::string_view>{"local", "scatter_all_gather", "scatter_ring_all_gather",
                                                  "reduce_scatter_gather", "ring_reduce_scatter_gather",
                                                  "circulant_broadcast"}));
}

}  // namespace
}  // namespace tutti
