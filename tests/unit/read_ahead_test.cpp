// Bytes that were read before they were asked for: in order, and none are read while some are left.
#include "transport/read_ahead.h"

#include <gtest/gtest.h>

#include <array>

namespace tutti {
namespace {

TEST(ReadAhead, GivesBytesInOrderUntilNoneAreLeft) {
  ReadAhead ahead;
  EXPECT_EQ(ahead.size(), 0u);
  for (std::size_t i = 0; i < 5; ++i) ahead.buffer()[i] = static_cast<std::byte>(i);
  ahead.filled(5);
  std::array<std::byte, 4> into{};
  EXPECT_EQ(ahead.take(std::span(into).first(3)), 3u);
  EXPECT_EQ(into[2], std::byte{2});
  EXPECT_EQ(ahead.take({}), 0u);
  EXPECT_EQ(ahead.take(into), 2u);
  EXPECT_EQ(into[1], std::byte{4});
  EXPECT_EQ(ahead.take(into), 0u);
}

TEST(ReadAhead, IsForSmallMessagesWhenNothingIsLeft) {
  ReadAhead ahead;
  EXPECT_TRUE(ahead.is_for(ReadAhead::bytes_max - 1));
  EXPECT_FALSE(ahead.is_for(ReadAhead::bytes_max));
  ahead.filled(1);
  EXPECT_FALSE(ahead.is_for(1));
  std::byte one{};
  EXPECT_EQ(ahead.take({&one, 1}), 1u);
  ahead.turn(false);
  EXPECT_FALSE(ahead.is_for(1));
  ahead.turn(true);
  EXPECT_TRUE(ahead.is_for(1));
}

}  // namespace
}  // namespace tutti
