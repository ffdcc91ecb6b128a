// Calls that peers tell come in parts, and no more are kept than can be compared.
#include <gtest/gtest.h>

#include "comm/call_history.h"

namespace tutti {
namespace {

TEST(ToldCalls, ArriveInParts) {
  ToldCalls told;
  std::vector<CallMark> marks(5);
  for (std::size_t i = 0; i < marks.size(); ++i) marks[i].sequence = i + 1;
  const std::span<const CallMark> all = marks;
  ASSERT_TRUE(told.add(7, std::as_bytes(all.first(2))));
  ASSERT_TRUE(told.add(3, std::as_bytes(all.first(1))));
  ASSERT_TRUE(told.add(7, std::as_bytes(all.subspan(2))));
  const auto calls = told.take();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].rank, 7);
  ASSERT_EQ(calls[0].marks.size(), 5u);
  for (std::size_t i = 0; i < marks.size(); ++i) EXPECT_EQ(calls[0].marks[i].sequence, i + 1);
  EXPECT_EQ(calls[1].marks.size(), 1u);
  EXPECT_TRUE(told.take().empty());
}

TEST(ToldCalls, WhatIsNoMarkIsRefusedAndTooManyAreDropped) {
  ToldCalls told;
  EXPECT_FALSE(told.add(1, std::as_bytes(std::span("x"))));
  const std::vector<CallMark> many(CallHistory::kept);
  EXPECT_TRUE(told.add(1, std::as_bytes(std::span(many))));
  EXPECT_TRUE(told.add(1, std::as_bytes(std::span(many))));
  EXPECT_EQ(told.take().front().marks.size(), CallHistory::kept);
}

}  // namespace
}  // namespace tutti
