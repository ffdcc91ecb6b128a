// The requests of a send queue: how many are under way, and what a post is given when the device took only some.
#include "transport/verbs/send_requests.h"

#include <gtest/gtest.h>

#include <array>

namespace tutti::verbs {
namespace {

constexpr std::uint32_t mask = 0xff'ffff;

TEST(SendCount, AsksOftenEnoughForCompletionsThatFreeTheQueue) {
  SendCount count(16);
  std::uint32_t asked = 0;
  for (int i = 0; i < 1'000; ++i) {
    if (count.add(false) != 0) asked = count.added();
    if (count.space() == 0) count.complete(asked & mask, mask);
    ASSERT_GT(count.space(), 0u) << i;
  }
  EXPECT_EQ(count.add(true), send_flag::signaled);
}

TEST(SendCount, PassesOverCompletionsOfRequestsThatWereNotAdded) {
  SendCount count(8);
  for (int i = 0; i < 3; ++i) (void)count.add(true);
  count.complete(4, mask);
  EXPECT_EQ(count.completed(), 0u);
  count.complete(2, mask);
  count.complete(1, mask);  // an earlier one
  EXPECT_EQ(count.completed(), 2u);
  EXPECT_EQ(count.space(), 7u);
}

TEST(SendCount, NumbersOfCompletionsWrapAround) {
  SendCount count(4);
  for (std::uint32_t i = 1; i < 100; ++i) {
    (void)count.add(true);
    count.complete(i & 7, 7);
    ASSERT_EQ(count.completed(), i);
  }
}

TEST(WaitingSends, AreAChainWithTheMemoryOfEach) {
  const std::array<Sge, 3> memory{{{.addr = 1}, {.addr = 2}, {.addr = 3}}};
  WaitingSends waiting;
  EXPECT_TRUE(waiting.empty());
  waiting.add(10, WorkOpcode::rdma_write, 0, std::span(memory).first(2));
  waiting.add(11, WorkOpcode::invalidate, 0);
  waiting.add(12, WorkOpcode::send, send_flag::inlined, std::span(memory).last(1));
  EXPECT_EQ(waiting.requests(), 2u) << "the write is a part of what the send completes";
  const SendWork* const first = waiting.chain();
  EXPECT_EQ(first->wr_id, 10u);
  EXPECT_EQ(first->sg_list[1].addr, 2u);
  const SendWork& last = *first->next->next;
  EXPECT_EQ(last.sg_list->addr, 3u);
  EXPECT_EQ(last.next, nullptr);

  waiting.drop_before(last);
  const SendWork* const left = waiting.chain();
  EXPECT_EQ(left->wr_id, 12u);
  EXPECT_EQ(left->sg_list->addr, 3u);
  EXPECT_EQ(left->next, nullptr);
  waiting.clear();
  EXPECT_TRUE(waiting.empty());
}

}  // namespace
}  // namespace tutti::verbs
