// The parts of a mailbox: packets arrive as they were sent, sends end when they may, and messages find their receives
// in order.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "collective/matching.h"
#include "collective/outbox.h"

namespace tutti {
namespace {

constexpr std::size_t slot_bytes = 128, slots_max = 3;
static_assert(sizeof(PacketHeader) < slot_bytes);

using Slots = std::deque<std::vector<std::byte>>;

class Out final : public Sender {
 public:
  explicit Out(Slots& slots) : slots_(slots) {}
  Result<std::span<std::byte>> acquire() override {
    return slots_.size() == slots_max ? std::span<std::byte>() : std::span(slot_);
  }
  Result<void> commit(std::size_t bytes) override {
    slots_.emplace_back(slot_.begin(), slot_.begin() + static_cast<std::ptrdiff_t>(bytes));
    return {};
  }
  Result<bool> flush() override { return flushes; }
  Result<Settled> settled() override { return Settled::all; }
  std::size_t slot_bytes() const override { return slot_.size(); }

  bool flushes = true;

 private:
  Slots& slots_;
  std::vector<std::byte> slot_ = std::vector<std::byte>(tutti::slot_bytes);
};

class In final : public Receiver {
 public:
  In(Slots& slots, bool remote) : slots_(slots), remote_(remote) {}
  Result<std::span<const std::byte>> peek(std::size_t bytes) override {
    if (slots_.empty()) return std::span<const std::byte>();
    EXPECT_EQ(bytes, remote_ ? slots_.front().size() : 0U) << "only between hosts are lengths not known";
    return std::span<const std::byte>(slots_.front());
  }
  Result<void> release() override {
    slots_.pop_front();
    return {};
  }

 private:
  Slots& slots_;
  bool remote_;
};

std::shared_ptr<Message> message_of(std::vector<std::byte>& data, int tag = 7) {
  auto message = std::make_shared<Message>();
  message->data = data.data();
  message->envelope = {.source = 0, .tag = tag, .bytes = data.size(), .type = DataType::uint8};
  return message;
}

std::shared_ptr<Message> receive_from(Rank source, int tag) {
  auto message = std::make_shared<Message>();
  message->send = false;
  message->envelope = {.source = source, .tag = tag};
  return message;
}

PacketHeader header_of(PacketKind kind, int tag, std::size_t bytes = 0, std::uint64_t id = 0) {
  PacketHeader header = PacketHeader::of(kind, {.tag = tag, .bytes = bytes});
  header.id = id;
  return header;
}

bool is(const Message& message, Message::State state) {
  return message.state.load() == state;
}

/// A connection to a peer that has done nothing yet.
struct Connection {
  explicit Connection(bool is_remote) : remote(is_remote), in(slots, is_remote) {}

  Result<void> push() { return outbox.push(out, remote, counts, stall); }
  /// Reads what has come. The packets that are complete now.
  int pull(std::byte* into) {
    int packets = 0;
    for (;;) {
      const auto piece = packet.peek(in, remote, slot_bytes);
      if (!piece || *piece == ArrivingPacket::Piece::none) return piece ? packets : -1;
      if (*piece == ArrivingPacket::Piece::first) packet.goes_to(into);
      if (!packet.take(in)) return -1;
      if (!packet.begun()) ++packets;
    }
  }

  bool remote;
  Slots slots;
  Out out{slots};
  In in;
  Outbox outbox;
  ArrivingPacket packet;
  MessageCounts counts;
  Stall stall;
};

TEST(Packets, ArriveAsTheyWereSentInAsManySlotsAsTheyNeed) {
  for (const bool remote : {false, true})
    for (const std::size_t bytes : {0, 1, 48, 127, 128, 1000}) {
      Connection peer(remote);
      std::vector<std::byte> data(bytes), into(bytes);
      for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 / 5);
      const auto message = message_of(data);
      peer.counts.begin();
      peer.outbox.send(message, PacketHeader::of(PacketKind::small, message->envelope));
      int packets = 0;
      for (int turn = 0; turn < 20 && packets == 0; ++turn) {
        ASSERT_TRUE(peer.push());
        packets = peer.pull(into.data());
      }
      EXPECT_EQ(packets, 1) << bytes << " bytes, remote: " << remote;
      EXPECT_EQ(peer.packet.header().tag, 7);
      EXPECT_EQ(into, data);
      EXPECT_TRUE(is(*message, Message::State::done));
      EXPECT_FALSE(peer.counts.pending());
      EXPECT_FALSE(peer.outbox.waits_to_leave());
    }
}

TEST(Packets, ThatMakeNoSenseAreRefused) {
  const auto refuses = [](const PacketHeader& header, std::size_t payload, bool remote = false) {
    Connection peer(remote);
    peer.slots.emplace_back(sizeof header + payload);
    std::memcpy(peer.slots.front().data(), &header, sizeof header);
    std::vector<std::byte> into(payload);
    return peer.pull(into.data()) < 0;
  };
  EXPECT_FALSE(refuses(header_of(PacketKind::small, 1, 8), 8));
  EXPECT_TRUE(refuses(header_of(PacketKind::small, 1, 8), 9));
  EXPECT_TRUE(refuses(header_of(PacketKind::wanted, 1, 8), 8)) << "it has no payload";
  EXPECT_TRUE(refuses(header_of(PacketKind::small, -1, 8), 8));
  EXPECT_TRUE(refuses(header_of(PacketKind::small, 1, PacketHeader::small_bytes_max + 1), 8));
  PacketHeader by_address = header_of(PacketKind::offer, 1, 100'000);
  by_address.carried.carry = Carry::window;
  EXPECT_FALSE(refuses(by_address, 0));
  EXPECT_TRUE(refuses(by_address, 0, /*remote=*/true));
  by_address.kind = PacketKind::small;
  by_address.bytes = 8;
  EXPECT_TRUE(refuses(by_address, 8));
}

TEST(Sends, EndOnceAllOfThemHasLeft) {
  Connection peer(false);
  std::vector<std::byte> data(8);
  const auto message = message_of(data);
  peer.counts.begin();
  peer.outbox.send(message, PacketHeader::of(PacketKind::small, message->envelope));
  EXPECT_FALSE(message->begun);
  peer.out.flushes = false;
  ASSERT_TRUE(peer.push());
  EXPECT_TRUE(message->begun);
  EXPECT_TRUE(peer.outbox.holds_message() && peer.outbox.waits_to_leave());
  EXPECT_TRUE(is(*message, Message::State::pending));
  peer.out.flushes = true;
  ASSERT_TRUE(peer.push());
  EXPECT_TRUE(is(*message, Message::State::done));
  EXPECT_FALSE(peer.outbox.holds_message());
}

TEST(Sends, OfLargeMessagesEndWithThePeersAnswer) {
  Connection peer(false);
  std::vector<std::byte> data(300), into(300);
  const auto taken = message_of(data), wanted = message_of(data);
  for (const auto& [message, id] : {std::pair{taken, 1U}, {wanted, 2U}}) {
    peer.counts.begin();
    peer.outbox.send(message, header_of(PacketKind::offer, 7, data.size(), id));
  }
  ASSERT_TRUE(peer.push());
  EXPECT_EQ(peer.pull(into.data()), 2);
  EXPECT_TRUE(peer.outbox.waits_for_peer() && !peer.outbox.waits_to_leave());
  EXPECT_FALSE(peer.outbox.answered(header_of(PacketKind::taken, 7, data.size(), 3), peer.counts));
  ASSERT_TRUE(peer.outbox.answered(header_of(PacketKind::taken, 7, data.size(), 1), peer.counts));
  EXPECT_TRUE(is(*taken, Message::State::done));
  ASSERT_TRUE(peer.outbox.answered(header_of(PacketKind::wanted, 7, data.size(), 2), peer.counts));
  EXPECT_FALSE(peer.outbox.answered(header_of(PacketKind::wanted, 7, data.size(), 2), peer.counts)) << "again";
  EXPECT_TRUE(is(*wanted, Message::State::pending));
  while (is(*wanted, Message::State::pending)) {
    ASSERT_TRUE(peer.push());
    ASSERT_GE(peer.pull(into.data()), 0);
  }
  EXPECT_TRUE(peer.packet.header().kind == PacketKind::data);
  EXPECT_EQ(peer.packet.header().id, 2U);
  EXPECT_FALSE(peer.outbox.waits_for_peer());
}

TEST(Sends, CanBeTakenBackBeforeTheyLeave) {
  Connection peer(false);
  std::vector<std::byte> data(8);
  const auto message = message_of(data);
  peer.outbox.send(message, PacketHeader::of(PacketKind::small, message->envelope));
  peer.outbox.cancel(*message);
  EXPECT_FALSE(peer.outbox.holds_message() || peer.outbox.waits_to_leave());
}

TEST(Replies, EndAReceiveThatHasFailed) {
  Connection peer(false);
  const auto receive = receive_from(0, 7);
  receive->error = Error{.code = Code::invalid_usage, .what = "too long"};
  peer.counts.begin();
  peer.outbox.reply(PacketKind::taken, header_of(PacketKind::offer, 7, 100'000, 5), receive);
  ASSERT_TRUE(peer.push());
  EXPECT_TRUE(is(*receive, Message::State::failed));
  EXPECT_EQ(peer.pull(nullptr), 1);
  EXPECT_EQ(peer.packet.header().id, 5U);
}

TEST(Matching, GivesAReceiveTheFirstMessageThatItTakes) {
  Matching matching;
  for (const auto& [from, tag] : {std::pair{0, 1}, {1, 1}, {0, 2}, {1, 2}})
    ASSERT_TRUE(matching.keep(from, header_of(PacketKind::small, tag, 4)));
  const auto kept = [&](Rank source, int tag) { return matching.kept_for({.source = source, .tag = tag}); };
  constexpr int any = MessageEnvelope::any;
  ASSERT_NE(kept(any, any), nullptr);
  EXPECT_EQ(kept(any, any)->from, 0);
  EXPECT_EQ(kept(any, 2)->from, 0);
  EXPECT_EQ(kept(1, any)->header.tag, 1);
  EXPECT_EQ(kept(2, any), nullptr);
  kept(1, 1)->taken_by = receive_from(1, 1);
  EXPECT_EQ(kept(1, any)->header.tag, 2) << "the first has its receive";
  matching.forget(*kept(any, any));
  EXPECT_EQ(kept(0, any)->header.tag, 2);
}

TEST(Matching, GivesAMessageToTheFirstReceiveThatTakesIt) {
  Matching matching;
  constexpr int any = MessageEnvelope::any;
  EXPECT_EQ(matching.first_posted(), nullptr);
  const auto narrow = receive_from(1, 5), wide = receive_from(any, any), other = receive_from(1, 6);
  for (const auto& receive : {narrow, wide, other}) matching.post(receive);
  EXPECT_EQ(matching.first_posted(), narrow.get());
  EXPECT_TRUE(matching.expects(1) && matching.expects(any) && !matching.expects(0));
  const auto receive_of = [&](Rank from, int tag) {
    return matching.receive_of({.from = from, .header = header_of(PacketKind::small, tag)});
  };
  EXPECT_EQ(receive_of(1, 6), wide);
  EXPECT_FALSE(matching.expects(any));
  EXPECT_EQ(receive_of(0, 5), nullptr);
  EXPECT_EQ(receive_of(1, 6), other);
  matching.cancel(*narrow);
  EXPECT_EQ(receive_of(1, 5), nullptr);
}

TEST(Matching, KeepsNoMoreThanALimit) {
  Matching matching;
  const PacketHeader header = header_of(PacketKind::small, 1, PacketHeader::small_bytes_max);
  Result<Unexpected*> kept = matching.keep(0, header);
  std::size_t bytes = 0;
  for (; kept; kept = matching.keep(0, header)) bytes += (*kept)->kept_bytes();
  EXPECT_EQ(kept.error().code, Code::system);
  EXPECT_GT(bytes, std::size_t{60} << 20);
  EXPECT_LE(bytes, std::size_t{64} << 20);
  matching.forget(*matching.kept_for(receive_from(0, 1)->envelope));
  EXPECT_TRUE(matching.keep(0, header)) << "there is room again";
}

}  // namespace
}  // namespace tutti
