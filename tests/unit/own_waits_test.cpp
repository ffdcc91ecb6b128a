// Peers read for whom a rank waits until its last thread waits no more.
#include <gtest/gtest.h>

#include "comm/waits.h"

namespace tutti {
namespace {

TEST(OwnWaits, PeersReadForWhom) {
  std::atomic<std::uint32_t> word = waits::for_nobody;
  OwnWaits own(word, {.ms = 7, .from = "a test"});
  EXPECT_EQ(own.limit().ms, 7);
  own.set_limit({.ms = 8, .from = "a test"});
  EXPECT_EQ(own.limit().ms, 8);
  EXPECT_EQ(own.noted_ns(), 0);

  own.begin();
  own.note(100, -1);
  EXPECT_EQ(word, waits::unknown);
  own.begin();
  own.note(200, 3);
  EXPECT_EQ(word, waits::for_rank(3));
  own.note(300, -1);
  EXPECT_EQ(word, waits::for_rank(3)) << "another thread knows more";
  own.note(400, any_rank);
  EXPECT_EQ(word, waits::for_rank(3));
  EXPECT_EQ(own.noted_ns(), 400);
  own.end();
  EXPECT_EQ(word, waits::for_rank(3)) << "one still waits";
  own.end();
  EXPECT_EQ(word, waits::for_nobody);
}

}  // namespace
}  // namespace tutti
