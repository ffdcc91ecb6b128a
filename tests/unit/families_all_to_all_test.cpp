// What all-to-alls and barriers promise about steps and bytes.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "plan/verify.h"
#include "support/schedule_counts.h"

namespace tutti {
namespace {

using testing::blocks_per_message;
using testing::blocks_sent;
using testing::built;
using testing::log2_up;
using testing::log_up;
using testing::messages;
using testing::messages_per_step;

constexpr auto all_to_all = Collective::all_to_all;
constexpr auto barrier = Collective::barrier;

/// Digits other than 0 of all numbers below n.
int digits(int n, int radix) {
  int count = 0;
  for (int i = 1; i < n; ++i)
    for (int left = i; left > 0; left /= radix) count += left % radix > 0;
  return count;
}

TEST(SpreadOut, SendsEachBlockOnceInBatches) {
  for (const int batch : algorithm::spread_out.values)
    for (int n = 2; n <= 64; ++n) {
      const Schedule exchange = built(fmt::format("spread_out/{}", batch), all_to_all, n);
      EXPECT_EQ(exchange.steps(), (n - 1 + batch - 1) / batch);
      EXPECT_EQ(blocks_sent(exchange), n - 1);
      EXPECT_EQ(messages_per_step(exchange), std::min(batch, n - 1));
      EXPECT_EQ(exchange.scratch_groups(), 0);
    }
}

TEST(BruckAllToAll, TakesLogarithmicSteps) {
  for (const int radix : algorithm::bruck_all_to_all.values)
    for (int n = 2; n <= 64; ++n) {
      const Schedule exchange = built(fmt::format("bruck_all_to_all/{}", radix), all_to_all, n);
      EXPECT_EQ(exchange.steps(), log_up(n, radix)) << radix << ' ' << n;
      EXPECT_EQ(blocks_sent(exchange), digits(n, radix)) << radix << ' ' << n;
      EXPECT_EQ(messages_per_step(exchange), std::min(radix, n) - 1);
      EXPECT_EQ(exchange.scratch_groups(), n - 1 - static_cast<int>(messages(exchange).size()) / n)
          << "all but those that go at once";
    }
  EXPECT_EQ(blocks_sent(built("bruck_all_to_all/2", all_to_all, 64)), 64 / 2 * 6);
}

TEST(CirculantAllToAll, TakesLogarithmicStepsOfAtMostHalfTheBlocks) {
  for (int n = 2; n <= 64; ++n) {
    const Schedule exchange = built("circulant_all_to_all", all_to_all, n);
    EXPECT_EQ(exchange.steps(), log2_up(n));
    EXPECT_EQ(messages_per_step(exchange), 1);
    EXPECT_LE(blocks_per_message(exchange), n / 2) << n;
    EXPECT_LT(exchange.scratch_groups(), n);
  }
  EXPECT_EQ(blocks_sent(built("circulant_all_to_all", all_to_all, 64)), 64 / 2 * 6);
}

TEST(HierarchicalAllToAll, SendsLongMessagesAcross) {
  for (const int size : {2, 4, 8})
    for (int n = 2 * size; n <= 64; n += size) {
      const int groups = n / size;
      const Schedule exchange = built(fmt::format("hierarchical_all_to_all/{}", size), all_to_all, n);
      EXPECT_EQ(exchange.steps(), groups);
      EXPECT_EQ(exchange.scratch_groups(), (size - 1) * (groups - 1));
      EXPECT_EQ(blocks_sent(exchange), groups * (size - 1) + size * (groups - 1));
      int across = 0;
      for (const auto& [message, blocks] : messages(exchange)) {
        const auto [step, from, to] = message;
        const bool inside = from / size == to / size;
        EXPECT_EQ(static_cast<int>(blocks.size()), inside ? groups : size);
        EXPECT_EQ(inside, step == 0);
        across += inside ? 0 : 1;
      }
      EXPECT_EQ(across, n * (groups - 1));
    }
  EXPECT_FALSE(testing::supported("hierarchical_all_to_all", all_to_all, 7));
}

// Ranks dealt to hosts in turn; hosts of different sizes are not served.
TEST(HierarchicalAllToAll, FollowsTheInnermostLevel) {
  Shape shape{.collective = all_to_all, .ranks = 6, .levels = {{0, 1, 2, 0, 1, 2}}};
  const auto meaning = verify(algorithm::hierarchical_all_to_all.build(shape, 0));
  EXPECT_TRUE(meaning) << meaning.error().text();
  shape.levels = {{0, 1, 1, 0, 1, 1}};
  EXPECT_FALSE(algorithm::hierarchical_all_to_all.supports(shape, 0));
}

TEST(KDissemination, TakesLogarithmicSteps) {
  for (const int radix : algorithm::k_dissemination.values)
    for (int n = 2; n <= 64; ++n) {
      const Schedule meeting = built(fmt::format("k_dissemination/{}", radix), barrier, n);
      EXPECT_EQ(meeting.steps(), log_up(n, radix)) << radix << ' ' << n;
      EXPECT_EQ(messages_per_step(meeting), std::min(radix, n) - 1) << radix << ' ' << n;
    }
}

}  // namespace
}  // namespace tutti
