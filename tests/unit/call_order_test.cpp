// Calls have turns in the order of their tickets, and collectives have numbers.
#include "comm/call_order.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(CallOrder, TurnsComeInTheOrderOfTickets) {
  std::atomic<std::uint64_t> last_completed = 0;
  CallOrder order(last_completed);
  EXPECT_TRUE(order.idle());
  const std::uint64_t first = order.take_ticket(), second = order.take_ticket();
  EXPECT_TRUE(order.turn_of(first));
  EXPECT_FALSE(order.turn_of(second));
  EXPECT_FALSE(order.idle());
  order.complete();
  EXPECT_TRUE(order.turn_of(second));
  EXPECT_EQ(order.completed(), 1u);
  order.complete();
  EXPECT_TRUE(order.idle());
}

TEST(CallOrder, PeersReadWhichCollectiveWasCompletedLast) {
  std::atomic<std::uint64_t> last_completed = 0;
  CallOrder order(last_completed);
  EXPECT_EQ(order.next_sequence(), 1u);
  EXPECT_EQ(order.next_sequence(), 2u);
  EXPECT_EQ(order.entered(), 2u);
  EXPECT_EQ(order.last_completed(), 0u);
  order.note_completed(2);
  EXPECT_EQ(order.last_completed(), 2u);
  EXPECT_EQ(last_completed, 2u);
}

}  // namespace
}  // namespace tutti
