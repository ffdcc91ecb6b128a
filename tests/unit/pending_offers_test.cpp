// What a sender knows of its offers: until when memory must not change, and what goes into a slot after all.
#include "transport/offer.h"

#include <gtest/gtest.h>

#include <array>

namespace tutti {
namespace {

struct Pending : ::testing::Test {
  std::array<std::byte, 64> memory{};
  PendingOffers offers;

  std::span<const std::byte> block(std::size_t nth) { return std::span(memory).subspan(8 * nth, 8); }
};

TEST_F(Pending, MemoryIsNeededUntilItsMessageIsReleased) {
  offers.add(3, 0, block(0), 1);
  EXPECT_EQ(offers.commit(), 1u);
  offers.add(4, 16, block(2), 4);
  EXPECT_TRUE(offers.overlap(std::span(memory).subspan(7, 5)));
  EXPECT_FALSE(offers.overlap(block(1)));
  offers.drop_before(3);
  EXPECT_TRUE(offers.overlap(block(0)));
  offers.drop_before(4);
  EXPECT_FALSE(offers.overlap(block(0)));
  EXPECT_TRUE(offers.overlap(block(2)));
  offers.drop_before(5);
  EXPECT_TRUE(offers.empty());
}

TEST_F(Pending, AnOfferCanBeTakenBackBeforeItsMessageLeaves) {
  offers.add(3, 8, block(0), 2);
  EXPECT_EQ(offers.commit(), 2u);
  offers.add(4, 8, block(1), 2);
  EXPECT_TRUE(offers.hold(2));
  offers.take_back(4, 16, 2);
  EXPECT_TRUE(offers.hold(2)) << "nothing was offered there";
  offers.take_back(4, 8, 2);
  EXPECT_FALSE(offers.hold(2));
  EXPECT_FALSE(offers.overlap(block(1)));
  EXPECT_TRUE(offers.overlap(block(0))) << "of the message before";
  EXPECT_EQ(offers.commit(), 0u);
}

TEST_F(Pending, BlocksOfTheOldestMessageGoIntoItsSlot) {
  memory[8] = std::byte{1};
  memory[16] = std::byte{2};
  offers.add(3, 0, block(1), 1);
  offers.add(3, 24, block(2), 8);
  offers.add(4, 0, block(3), 1);
  std::array<std::byte, 32> slot{};
  ASSERT_EQ(offers.oldest(), 3u);
  offers.fill_oldest(slot.data());
  EXPECT_EQ(slot[0], std::byte{1});
  EXPECT_EQ(slot[24], std::byte{2});
  EXPECT_EQ(offers.oldest(), 4u);
}

}  // namespace
}  // namespace tutti
