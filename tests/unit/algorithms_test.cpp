// Every algorithm, proven for every number of ranks, and what each promises about steps and bytes.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "plan/lower.h"
#include "plan/verify.h"
#include "support/environment.h"
#include "support/schedule_counts.h"
#include "support/shapes.h"

namespace tutti {
namespace {

using testing::blocks_sent;
using testing::built;
using testing::environment;
using testing::for_every_algorithm;
using testing::log2_up;
using testing::messages_per_step;
using testing::text;

class EveryAlgorithm : public ::testing::TestWithParam<int> {};

TEST_P(EveryAlgorithm, IsRight) {
  for_every_algorithm(GetParam(), [](const Algorithm& algorithm, const Shape& shape) {
    const auto meaning = verify(algorithm.build(shape));
    ASSERT_TRUE(meaning) << text(algorithm, shape) << ": " << meaning.error().text();
    EXPECT_TRUE(meaning->same_bits) << text(algorithm, shape);
  });
}

/// TUTTI_TEST_RANKS at most, for builds that are slow.
std::vector<int> up_to_limit(std::vector<int> ranks) {
  std::erase_if(ranks, [limit = environment("TUTTI_TEST_RANKS", 128)](int n) { return n > limit; });
  return ranks;
}

std::vector<int> many_ranks() {
  std::vector<int> ranks(64);
  std::iota(ranks.begin(), ranks.end(), 1);
  ranks.insert(ranks.end(), {97, 128});
  return up_to_limit(ranks);
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryAlgorithm, ::testing::ValuesIn(many_ranks()), ::testing::PrintToStringParamName());

// Few ranks have so little to do that more is possible by chance; so what is not claimed must fail for some number of
// ranks that are not few.
TEST(Algorithms, SayTruthfullyWhatCarriesThem) {
  std::map<std::tuple<const Algorithm*, Collective, Access>, bool> unclaimed;  // whether all of its schedules lower
  for (const int ranks : {1, 2, 3, 4, 5, 8, 9, 12, 16, 17, 33, 64})
    for_every_algorithm(ranks, [&](const Algorithm& algorithm, const Shape& shape) {
      const Schedule schedule = algorithm.build(shape);
      for (const Access access : {Access::in_line, Access::mapped, Access::cma, Access::slots}) {
        const bool lowers = lowers_to(schedule, access);
        if (serves(algorithm, shape, access)) {
          EXPECT_TRUE(lowers) << text(algorithm, shape) << " by " << name(access);
        } else if (shape.ranks >= 8) {
          bool& always = unclaimed.try_emplace({&algorithm, shape.collective, access}, true).first->second;
          always = always && lowers;
        }
      }
    });
  for (const auto& [what, always] : unclaimed) {
    const auto& [algorithm, collective, access] = what;
    EXPECT_FALSE(always) << algorithm->name << ", " << name(collective) << ", says nothing of " << name(access);
  }
}

TEST(Algorithms, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) EXPECT_TRUE(names.insert(algorithm.name).second) << algorithm.name;
  EXPECT_EQ(find_algorithm("ring", {.collective = Collective::all_reduce, .ranks = 3}), &member(algorithm::ring));
  EXPECT_EQ(find_algorithm("ring", {.collective = Collective::scatter, .ranks = 3}), nullptr);
  EXPECT_EQ(find_algorithm("rings", {.collective = Collective::all_reduce, .ranks = 3}), nullptr);
}

TEST(Ring, TakesItsStepsAtOptimalVolume) {
  for (int n = 2; n <= 64; ++n) {
    const Schedule reduced = built("ring", Collective::all_reduce, n);
    EXPECT_EQ(reduced.steps(), 2 * (n - 1));
    EXPECT_EQ(reduced.parts(), n);
    EXPECT_EQ(blocks_sent(reduced), 2 * (n - 1)) << "of n-th parts";
    EXPECT_EQ(messages_per_step(reduced), 1);
    for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
      const Schedule half = built("ring", collective, n);
      EXPECT_EQ(half.steps(), n - 1);
      EXPECT_EQ(blocks_sent(half), n - 1);
    }
  }
}

TEST(Circulant, TakesLogarithmicStepsAtOptimalVolume) {
  for (int n = 2; n <= 64; ++n) {
    const Schedule reduced = built("circulant", Collective::all_reduce, n);
    EXPECT_EQ(reduced.steps(), 2 * log2_up(n));
    EXPECT_EQ(blocks_sent(reduced), 2 * (n - 1)) << "of n-th parts";
    EXPECT_EQ(messages_per_step(reduced), 1);
    for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
      const Schedule half = built("circulant", collective, n);
      EXPECT_EQ(half.steps(), log2_up(n));
      EXPECT_EQ(blocks_sent(half), n - 1);
      EXPECT_LE(half.scratch_groups(), n / 2);
    }
  }
}

TEST(RecursiveDoubling, TakesLogarithmicSteps) {
  for (int n = 2; n <= 64; ++n) {
    const bool power = std::has_single_bit(static_cast<unsigned>(n));
    EXPECT_EQ(built("recursive_doubling", Collective::all_reduce, n).steps(), power ? log2_up(n) : log2_up(n) - 1 + 2);
    if (!power) continue;
    const Schedule gather = built("recursive_doubling", Collective::all_gather, n);
    EXPECT_EQ(gather.steps(), log2_up(n));
    EXPECT_EQ(blocks_sent(gather), n - 1);
  }
}

TEST(Binomial, TakesLogarithmicSteps) {
  for (int n = 2; n <= 64; ++n)
    for (const Collective collective :
         {Collective::broadcast, Collective::reduce, Collective::gather, Collective::scatter}) {
      const Schedule tree = built("binomial", collective, n, n / 3);
      EXPECT_EQ(tree.steps(), log2_up(n)) << name(collective) << n;
      EXPECT_EQ(messages_per_step(tree), 1);
    }
}

TEST(Binomial, SendsNoMoreThanItMust) {
  for (int n = 2; n <= 64; ++n) {
    EXPECT_EQ(blocks_sent(built("binomial", Collective::reduce, n, n / 3)), 1);
    EXPECT_EQ(blocks_sent(built("binomial", Collective::scatter, n, n / 3)), n - 1);
    EXPECT_LE(blocks_sent(built("binomial", Collective::gather, n, n / 3)), n / 2);
  }
}

TEST(Dissemination, TakesLogarithmicStepsWithOneMessageEach) {
  for (int n = 2; n <= 64; ++n) {
    const Schedule barrier = built("dissemination", Collective::barrier, n);
    EXPECT_EQ(barrier.steps(), log2_up(n));
    EXPECT_EQ(messages_per_step(barrier), 1);
  }
}

TEST(Pairwise, MeetsOnePartnerAtATime) {
  for (int n = 2; n <= 64; ++n) {
    const Schedule exchange = built("pairwise", Collective::all_to_all, n);
    EXPECT_EQ(exchange.steps(), n - 1);
    EXPECT_EQ(blocks_sent(exchange), n - 1);
    EXPECT_EQ(messages_per_step(exchange), 1);
  }
}

TEST(OneAndTwoShot, TakeOneAndTwoSteps) {
  for (int n = 2; n <= 64; ++n) {
    for (int i = 0; i < collective_count; ++i) EXPECT_EQ(built("one_shot", static_cast<Collective>(i), n).steps(), 1);
    const Schedule reduced = built("two_shot", Collective::all_reduce, n);
    EXPECT_EQ(reduced.steps(), 2);
    EXPECT_EQ(blocks_sent(reduced), 2 * (n - 1)) << "of n-th parts";
    EXPECT_EQ(built("two_shot", Collective::broadcast, n, n - 1).steps(), 2);
    EXPECT_EQ(built("two_shot", Collective::reduce, n, n - 1).steps(), 2);
  }
}

// So a call gives the same bits whether it is small, large, one in a group, or repeated through another access.
TEST(OneAndTwoShot, ReduceInOneOrder) {
  for (const int n : {2, 3, 8, 17, 40}) {
    const auto small = verify(built("one_shot", Collective::all_reduce, n));
    const auto large = verify(built("two_shot", Collective::all_reduce, n));
    ASSERT_TRUE(small && large);
    EXPECT_EQ(small->order[0], large->order[0]) << n;
  }
}

TEST(Ring, ReducesInAnotherOrderThanTwoShot) {
  const auto one_pass = verify(built("two_shot", Collective::all_reduce, 4));
  const auto in_pairs = verify(built("ring", Collective::all_reduce, 4));
  ASSERT_TRUE(one_pass && in_pairs);
  EXPECT_NE(one_pass->order[0], in_pairs->order[0]);
}

}  // namespace
}  // namespace tutti
