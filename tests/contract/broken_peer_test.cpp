// Fifos through shared memory: what a broken or hostile peer writes ends in an error, never beyond a slot.
#include <gtest/gtest.h>

#include <vector>

#include "support/own_memory.h"
#include "support/shared_areas.h"
#include "transport/shm.h"

namespace tutti {
namespace {

constexpr std::size_t slot_bytes = 3000;  // no power of two, less than a page

testing::OwnMemory own_memory;

class BrokenPeer : public ::testing::Test {
 protected:
  testing::SharedAreas areas_{{.ranks = 2, .channels = 1, .slots = 2, .slot_bytes = slot_bytes}};
  ShmSender sender_{real_system(), areas_.area(0), 0, areas_.area(1), 1, 0, false};
  ShmReceiver receiver_{real_system(), areas_.area(1), 1, areas_.area(0), 0, 0, false};
};

TEST_F(BrokenPeer, MessagesLongerThanASlotAreRefused) {
  ASSERT_TRUE(sender_.acquire());
  ASSERT_TRUE(sender_.commit(5));
  for (const std::uint32_t bytes : {static_cast<std::uint32_t>(slot_bytes) + 1, ~0u}) {
    areas_.area(1).slot_head(0, 0, 0).bytes = bytes;
    const auto message = receiver_.peek(5);
    ASSERT_FALSE(message);
    EXPECT_EQ(message.error().code, Code::remote);
    EXPECT_EQ(message.error().peer, 0);
  }
}

TEST_F(BrokenPeer, OffersThatCannotBeReadAreRefused) {
  ShmSender sender(real_system(), areas_.area(0), 0, areas_.area(1), 1, 0, false, &own_memory);
  const std::vector<std::byte> block(200);
  ASSERT_TRUE(sender.acquire());
  EXPECT_FALSE(sender.offer(0, std::span(block).first(sizeof(Offer) - 1))) << "no room for its description";
  ASSERT_TRUE(sender.offer(0, block));
  ASSERT_TRUE(sender.commit(2 * block.size()));
  ASSERT_TRUE(receiver_.peek(2 * block.size()));
  const auto found = receiver_.offered(0);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::remote);
  areas_.area(1).slot_head(0, 0, 0).offers = ~0u;
  ASSERT_TRUE(receiver_.peek(2 * block.size()));
  for (const std::size_t at : {block.size(), slot_bytes - 1, 10 * slot_bytes}) {
    const auto none = receiver_.offered(at);
    ASSERT_TRUE(none) << at;
    EXPECT_EQ(none->at.data(), nullptr) << at;
  }
}

TEST_F(BrokenPeer, OffersOfAPeerThatHasFailedAreNotBelieved) {
  ShmSender sender(real_system(), areas_.area(0), 0, areas_.area(1), 1, 0, false, &own_memory);
  ShmReceiver receiver(real_system(), areas_.area(1), 1, areas_.area(0), 0, 0, false, &own_memory);
  const std::vector<std::byte> block(200);
  ASSERT_TRUE(sender.acquire());
  ASSERT_TRUE(sender.offer(0, block));
  ASSERT_TRUE(sender.commit(block.size()));
  ASSERT_TRUE(receiver.peek(block.size()));
  ASSERT_EQ(receiver.offered(0)->at.data(), block.data());
  areas_.area(0).header().state.store(RankState::failed);
  const auto released = receiver.release();
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().code, Code::remote);
  EXPECT_EQ(released.error().peer, 0);
}

TEST_F(BrokenPeer, MoreMessagesThanSlotsAreRefused) {
  for (const std::uint64_t filled : {std::uint64_t{3}, ~std::uint64_t{0}}) {
    areas_.area(1).flags(0, 0).filled.store(filled);
    const auto message = receiver_.peek(5);
    ASSERT_FALSE(message);
    EXPECT_EQ(message.error().code, Code::remote);
  }
}

TEST_F(BrokenPeer, ReleasingWhatWasNotSentIsRefused) {
  for (int slot = 0; slot < 2; ++slot) {
    ASSERT_TRUE(sender_.acquire());
    ASSERT_TRUE(sender_.commit(1));
  }
  for (const std::uint64_t freed : {std::uint64_t{3}, ~std::uint64_t{0}}) {
    areas_.area(0).flags(0, 1).freed.store(freed);
    const auto slot = sender_.acquire();
    ASSERT_FALSE(slot);
    EXPECT_EQ(slot.error().code, Code::remote);
    EXPECT_EQ(slot.error().peer, 1);
    EXPECT_FALSE(sender_.settled());
  }
}

}  // namespace
}  // namespace tutti
