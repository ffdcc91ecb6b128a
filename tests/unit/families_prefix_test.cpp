// What algorithms of prefix reductions promise about steps and bytes.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>

#include "plan/lower.h"
#include "plan/verify.h"
#include "support/schedule_counts.h"

namespace tutti {
namespace {

using testing::blocks_per_message;
using testing::blocks_sent;
using testing::built;
using testing::log2_up;
using testing::messages_per_step;
using testing::supported;

constexpr auto scan = Collective::scan;
constexpr auto ex_scan = Collective::ex_scan;

/// Passes that combine, on the rank that has most of them.
int sums_made(const Schedule& schedule) {
  std::map<std::tuple<int, Rank, int, int>, int> operands;
  std::map<Rank, int> made;
  for (const Transfer& t : schedule.transfers())
    if (t.kind == Kind::reduce)
      if (++operands[{t.step, t.to, static_cast<int>(t.dst.buffer), t.dst.block}] == 2) ++made[t.to];
  int most = 0;
  for (const auto& [rank, sums] : made) most = std::max(most, sums);
  return most;
}

TEST(OneShot, OfAPrefixSendsToHigherRanksAlone) {
  for (int n = 2; n <= 64; ++n)
    for (const Collective collective : {scan, ex_scan}) {
      const Schedule shot = built("one_shot", collective, n);
      EXPECT_EQ(shot.steps(), 1);
      EXPECT_EQ(blocks_sent(shot), n - 1);
      for (const Transfer& t : shot.transfers()) EXPECT_TRUE(t.from < t.to || (t.from == t.to && collective == scan));
    }
}

TEST(Scan, ByRecursiveDoublingTakesLogarithmicSteps) {
  for (int n = 2; n <= 64; ++n) {
    const Schedule doubling = built("recursive_doubling", scan, n);
    EXPECT_EQ(doubling.steps(), log2_up(n)) << n;
    EXPECT_EQ(messages_per_step(doubling), 1);
    EXPECT_EQ(blocks_per_message(doubling), 1);
    EXPECT_LE(blocks_sent(doubling), log2_up(n));
    EXPECT_EQ(sums_made(doubling), log2_up(n));
    EXPECT_EQ(doubling.scratch_groups(), 0);
  }
}

TEST(ExScan, ByRecursiveDoublingTakesTheRoundsOfItsPaper) {
  for (int n = 2; n <= 200; ++n) {
    const Schedule doubling = built("recursive_doubling", ex_scan, n);
    const int rounds = n == 2 ? 1 : static_cast<int>(std::ceil(std::log2((n - 1) * 4 / 3.0) - 1e-9));
    EXPECT_EQ(doubling.steps(), rounds) << n;
    EXPECT_EQ(messages_per_step(doubling), 1);
    EXPECT_EQ(blocks_per_message(doubling), n > 3 ? 2 : 1);
    EXPECT_LE(blocks_sent(doubling), rounds + 1);
    EXPECT_EQ(sums_made(doubling), rounds - 1) << "the input counts for nothing in the first round";
    EXPECT_EQ(doubling.scratch_groups(), 0);
  }
}

TEST(Chain, OfAPrefixGoesFromNeighbourToNeighbour) {
  for (const int chunks : algorithm::chain.values)
    for (int n = 2; n <= 64; ++n) {
      const Schedule all = built(fmt::format("chain/{}", chunks), scan, n);
      EXPECT_EQ(all.steps(), n - 1 + chunks) << n;
      EXPECT_EQ(all.scratch_groups(), 0);
      const Schedule below = built(fmt::format("chain/{}", chunks), ex_scan, n);
      EXPECT_EQ(below.steps(), n == 2 ? chunks : 2 * (n - 3 + chunks) + 1) << n;
      for (const Schedule& chain : {all, below}) {
        EXPECT_EQ(chain.parts(), chunks);
        EXPECT_EQ(blocks_sent(chain), chunks) << "all once";
        EXPECT_EQ(messages_per_step(chain), 1);
        for (const Transfer& t : chain.transfers()) EXPECT_TRUE(t.from == t.to || t.from + 1 == t.to);
      }
    }
}

TEST(Prefixes, AreServedByEveryAccess) {
  for (const int n : {2, 3, 5, 16, 17})
    for (const Collective collective : {scan, ex_scan})
      for (const Access access : {Access::in_line, Access::mapped, Access::cma, Access::slots}) {
        int served = 0;
        for (const Algorithm& algorithm : algorithms())
          served += serves(algorithm, {.collective = collective, .ranks = n}, access) ? 1 : 0;
        EXPECT_GT(served, 0) << name(collective) << " of " << n << " by " << name(access);
      }
  EXPECT_FALSE(supported("chain", scan, 1));
  EXPECT_EQ(built("local", ex_scan, 1).transfers().size(), 0u) << "rank 0 has no result";
}

/// Which inputs a rank gets depends on its number, wherever it sits.
TEST(Prefixes, DoNotFollowTheOrderOfTheMachine) {
  for (const Collective collective : {scan, ex_scan})
    for (const Algorithm& algorithm : algorithms()) {
      const Shape plain{.collective = collective, .ranks = 6};
      Shape turned = plain;
      turned.order = {3, 0, 5, 1, 4, 2};
      if (!algorithm.supports(plain)) continue;
      EXPECT_TRUE(algorithm.build(plain).transfers() == algorithm.build(turned).transfers()) << algorithm.name;
    }
}

}  // namespace
}  // namespace tutti
