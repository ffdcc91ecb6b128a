// What a link by RDMA knows of its messages, without a device: what has arrived, what leaves from where, and where the
// peer wants it.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "transport/verbs/arrivals.h"
#include "transport/verbs/invitations.h"
#include "transport/verbs/send_slots.h"

namespace tutti::verbs {
namespace {

constexpr LinkShape shape{.slots = 2, .slot_bytes = 20'000, .queue_pairs = 3};

std::uint64_t address(const std::byte* memory) {
  return reinterpret_cast<std::uint64_t>(memory);
}

// ---- Arrivals ----

struct Arrived : ::testing::Test {
  std::vector<std::byte> ring{shape.ring_bytes()};
  Arrivals arrivals{shape, ring.data()};

  bool place(std::uint64_t number, std::uint32_t piece, std::uint32_t last, std::size_t bytes) {
    return arrivals.place(number, {.piece = piece, .last = last}, bytes, shape.slot_bytes);
  }
};

TEST_F(Arrived, AMessageIsCompleteWhenItsLastGapIsFilled) {
  EXPECT_EQ(arrivals.here(0, 17'000), 0u);
  ASSERT_TRUE(place(0, 1, 1, 616));
  EXPECT_EQ(arrivals.here(0, 17'000), 0u) << "its beginning is missing";
  EXPECT_EQ(arrivals.here(16'384, 616), 616u);
  EXPECT_FALSE(arrivals[0].complete());
  ASSERT_TRUE(place(0, 0, 1, 16'384));
  EXPECT_TRUE(arrivals[0].complete());
  EXPECT_EQ(arrivals[0].bytes, 17'000u);
  EXPECT_EQ(arrivals.here(100, 16'900), 16'900u);
  EXPECT_FALSE(place(0, 0, 1, 16'384)) << "twice";
}

TEST_F(Arrived, SlotsAreFreeInOrderOnceTakenAndComplete) {
  ASSERT_TRUE(place(1, 0, 0, 10));
  arrivals.take();
  arrivals.take();
  EXPECT_EQ(arrivals.grant(), 0u) << "the first one is still to come";
  ASSERT_TRUE(place(0, 0, 0, 10));
  EXPECT_EQ(arrivals.grant(), 2u);
  EXPECT_EQ(arrivals.granted(), 2u);
  EXPECT_EQ(arrivals.number_of(5), 5u);
  EXPECT_FALSE(arrivals.number_of(6)) << "beyond the ring";
  EXPECT_FALSE(arrivals.number_of(1)) << "over";
  for (int i = 0; i < 4; ++i) arrivals.take();
  EXPECT_FALSE(arrivals.has_space_for_next());
}

TEST_F(Arrived, SeveralMessagesOfOneWrite) {
  const std::uint32_t words[] = {2, 3, 64};
  for (const std::uint64_t last : {0, 1}) std::memcpy(ring.data() + shape.slot_at(last), words, sizeof words);
  EXPECT_FALSE(arrivals.unpack(0, 16 + 67)) << "one of them was before the first";
  ASSERT_TRUE(arrivals.unpack(1, 16 + 67));
  EXPECT_EQ(arrivals[0].bytes, 3u);
  EXPECT_EQ(arrivals.data(0), arrivals.slot(1) + 16);
  EXPECT_EQ(arrivals.data(1), arrivals.slot(1) + 19);
  EXPECT_FALSE(arrivals.unpack(1, 16 + 67)) << "twice";
}

// ---- Slots to send from ----

TEST(SendSlots, AMessageIsGatheredFromItsSlotAndWhatIsOffered) {
  std::vector<std::byte> memory(200), offered(100);
  std::iota(reinterpret_cast<unsigned char*>(offered.data()), reinterpret_cast<unsigned char*>(offered.data()) + 100,
            1);
  SendSlots slots(memory.data(), 7, 2, 100);
  std::byte* const slot = slots.slot(3).data();
  ASSERT_EQ(slot, memory.data() + 100);
  slots.offer(3, {.at = 50, .memory = std::span(offered).subspan(20, 30), .key = 9});
  slots.offer(3, {.at = 10, .memory = std::span(offered).first(20), .key = 8});
  struct Piece {
    const std::byte* at;
    std::uint32_t bytes, key;
  };
  const auto expect = [&](std::size_t from, std::size_t to, const std::vector<Piece>& expected) {
    Sge pieces[QueuePair::pieces_max];
    ASSERT_EQ(slots.gather(3, from, to, pieces), expected.size()) << from << " to " << to;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(pieces[i].addr, address(expected[i].at)) << from << " to " << to << ", piece " << i;
      EXPECT_EQ(pieces[i].length, expected[i].bytes) << from << " to " << to << ", piece " << i;
      EXPECT_EQ(pieces[i].lkey, expected[i].key) << from << " to " << to << ", piece " << i;
    }
  };
  const std::byte* const first = offered.data();
  expect(0, 100, {{slot, 10, 7}, {first, 20, 8}, {slot + 30, 20, 7}, {first + 20, 30, 9}, {slot + 80, 20, 7}});
  expect(15, 60, {{first + 5, 15, 8}, {slot + 30, 20, 7}, {first + 20, 10, 9}});
  expect(30, 50, {{slot + 30, 20, 7}});
  expect(40, 40, {});

  EXPECT_FALSE(slots.has_offers_in(3, std::span(offered).subspan(50)));
  ASSERT_TRUE(slots.has_offers_in(3, std::span(offered).subspan(19, 1)));
  slots.copy_offers_in(3, std::span(offered).subspan(19, 1));
  EXPECT_EQ(slot[10], std::byte{1});
  expect(0, 100, {{slot, 50, 7}, {first + 20, 30, 9}, {slot + 80, 20, 7}});
}

// ---- Invitations by the peer ----

TEST(PeerInvitations, AreForMessagesThatHaveNotLeft) {
  std::vector<std::byte> ring(shape.ring_bytes());
  const auto write = [&](std::uint64_t message, const Destination& to) {
    std::memcpy(ring.data() + shape.invitation_at(message), &to, sizeof to);
  };
  PeerInvitations invitations(shape, ring.data());
  write(102, {.address = 0x1000, .key = 5, .bytes = 300});
  EXPECT_TRUE(invitations.take(99, 100)) << "too late, but that happens";
  EXPECT_FALSE(invitations.take(104, 100)) << "beyond the ring";
  EXPECT_FALSE(invitations.take(101, 100)) << "for no bytes";
  ASSERT_TRUE(invitations.take(102, 100));
  ASSERT_NE(invitations.of(102), nullptr);
  EXPECT_EQ(invitations.of(102)->address, 0x1000u);
  EXPECT_EQ(invitations.of(101), nullptr);
  EXPECT_EQ(invitations.of(106), nullptr) << "of an earlier message in the same slot";
  write(103, {.address = 0x1000, .key = 5, .bytes = 20'001});
  EXPECT_FALSE(invitations.take(103, 100)) << "for more than a slot";
}

TEST(PeerInvitations, EachQueuePairHasPlacesOfItsOwn) {
  std::vector<std::uint64_t> places;
  for (std::uint64_t message = 0; message < 12; ++message) places.push_back(shape.invitation_at(message));
  std::ranges::sort(places);
  EXPECT_EQ(std::ranges::unique(places).size(), 0u) << "the first of the messages that share a place is number 12";
  EXPECT_EQ(places.front(), 4 * shape.slot_bytes);
  EXPECT_EQ(places.back() + sizeof(Destination), shape.ring_bytes());
}

}  // namespace
}  // namespace tutti::verbs
