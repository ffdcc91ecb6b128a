// A communicator fails once; what is lost before that is noted once; ranks that are gone stay so.
#include "comm/comm_failure.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

Error error(const char* what) {
  return {.code = Code::remote, .what = what};
}

TEST(CommFailure, IsTheFirstAndIsToldBeforeItIsSeen) {
  CommFailure failure(2);
  int told = 0;
  const auto tell = [&](const Error& set) {
    ++told;
    EXPECT_EQ(set.what, "the first");
    EXPECT_FALSE(failure.happened());
  };
  EXPECT_FALSE(failure.error_or_loss());
  const Error* const first = failure.set(error("the first"), tell);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->what, "the first");
  EXPECT_TRUE(failure.happened());
  EXPECT_EQ(failure.set(error("the second"), tell), nullptr);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(failure.error().what, "the first");
  EXPECT_FALSE(failure.reported());
  failure.mark_reported();
  EXPECT_TRUE(failure.reported());
}

TEST(CommFailure, ALossIsNoFailureButAReasonToLeave) {
  CommFailure failure(2);
  EXPECT_FALSE(failure.leave());
  EXPECT_FALSE(failure.left_after_loss());
  failure.note_loss(error("lost"), /*at_rest=*/false);
  failure.note_loss(error("lost later"), /*at_rest=*/true);
  EXPECT_FALSE(failure.lost_at_rest());
  EXPECT_FALSE(failure.happened());
  EXPECT_EQ(failure.error_or_loss()->what, "lost");
  EXPECT_EQ(failure.leave()->what, "lost");
  EXPECT_TRUE(failure.left_after_loss());
  EXPECT_NE(failure.set(error("failed"), [](const Error&) {}), nullptr);
  EXPECT_EQ(failure.error_or_loss()->what, "failed");
}

TEST(CommFailure, ALossAtRestIsKnownAsSuch) {
  CommFailure failure(2);
  failure.note_loss(error("lost"), /*at_rest=*/true);
  EXPECT_TRUE(failure.lost_at_rest());
}

TEST(GoneRanks, AMarkStays) {
  GoneRanks gone(3);
  EXPECT_FALSE(gone.any());
  gone.mark(1, 100);
  gone.mark(1, 200);
  gone.mark(2, 300, /*mute=*/true);
  EXPECT_TRUE(gone.any());
  EXPECT_EQ(gone.since_ns(0), 0);
  EXPECT_EQ(gone.since_ns(1), 100);
  EXPECT_FALSE(gone.is_mute(1));
  EXPECT_TRUE(gone.is_mute(2));
}

}  // namespace
}  // namespace tutti
