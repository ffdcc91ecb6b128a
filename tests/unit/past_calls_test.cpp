// What calls have shown to those after them, and what goes on beside them.
#include "call/past_calls.h"

#include <gtest/gtest.h>

#include <string_view>

#include "call/background.h"

namespace tutti {
namespace {

TEST(PastCalls, ShowWhatTheLastOneUsed) {
  PastCalls past;
  EXPECT_STREQ(past.algorithm(), "");
  EXPECT_STREQ(past.transport(), "");
  past.note_used("ring", "cma");
  past.note_used("one_shot", "inline");
  EXPECT_STREQ(past.algorithm(), "one_shot");
  EXPECT_STREQ(past.transport(), "inline");
}

TEST(PastCalls, WhatIsNotLargerThanASmallCallIsSmall) {
  PastCalls past;
  EXPECT_FALSE(past.is_small(Collective::broadcast, 0));
  past.note_used("one_shot", "inline");
  past.note_small(Collective::broadcast, 64);
  past.note_small(Collective::broadcast, 8);
  past.note_used("ring", "cma");
  EXPECT_TRUE(past.is_small(Collective::broadcast, 64));
  EXPECT_FALSE(past.is_small(Collective::broadcast, 65));
  EXPECT_FALSE(past.is_small(Collective::all_reduce, 0));
  EXPECT_STREQ(past.small_algorithm(Collective::broadcast), "one_shot");
}

class Idle final : public Background {
 public:
  bool active() const override { return false; }
  bool progress() override { return false; }
  void close() override {}
};

class Watch final : public Task {
 public:
  bool advance() override { return true; }
  std::int64_t poll_set(std::vector<PollItem>&) override { return 0; }
};

TEST(BesideCalls, KeepTheWorkAndGiveTheWatchBackOnce) {
  BesideCalls beside;
  EXPECT_EQ(beside.background(), nullptr);
  auto idle = std::make_unique<Idle>();
  const Background* const raw = idle.get();
  beside.attach(std::move(idle));
  EXPECT_EQ(beside.background(), raw);
  const auto watch = std::make_shared<Watch>();
  beside.watched_by(watch);
  EXPECT_EQ(beside.take_watch(), watch);
  EXPECT_EQ(beside.take_watch(), nullptr);
}

}  // namespace
}  // namespace tutti
