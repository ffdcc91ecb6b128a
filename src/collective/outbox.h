// What is still to leave for one peer, and the sends that end with it or with the peer's answer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "collective/packet.h"
#include "comm/peer_failure.h"

namespace tutti {

class Outbox {
 public:
  /// `header`: of a small message, which leaves with it, or of an offer, which the peer answers.
  void send(const std::shared_ptr<Message>& message, const PacketHeader& header);
  /// `ends`: the receive that ends once the reply has left, for a sender may wait for it.
  void reply(PacketKind kind, const PacketHeader& about, const std::shared_ptr<Message>& ends = nullptr);
  /// The peer says of an offer that it wants the data, or that it has taken it. Errors: remote (of none).
  Result<void> answered(const PacketHeader& header, MessageCounts& counts);
  void cancel(const Message& message);

  /// Fills the slots that are free. Errors: those of the connection.
  Result<void> push(Sender& sender, bool remote, MessageCounts& counts, Stall& stall);

  /// Packets, or their flush, wait for the connection.
  bool waits_to_leave() const { return !packets_.empty() || !unflushed_.empty(); }
  /// Packets or answers are waited for.
  bool waits_for_peer() const { return !packets_.empty() || !offered_.empty(); }
  /// A message can only end with something that goes to the peer, or comes from it.
  bool holds_message() const;

  /// All messages; null, too.
  template <class Visit>
  void visit(Visit each) const {
    for (const Packet& packet : packets_) each(packet.message);
    std::ranges::for_each(unflushed_, each);
    for (const auto& [id, message] : offered_) each(message);
  }

 private:
  struct Packet {
    PacketHeader header;
    const std::byte* payload = nullptr;
    std::size_t bytes = 0;  ///< of the payload
    std::shared_ptr<Message> message;
    std::size_t moved = 0;
    bool begun = false;
  };

  std::deque<Packet> packets_;
  std::vector<std::shared_ptr<Message>> unflushed_;  ///< small ones that wait for a flush
  std::vector<std::pair<std::uint64_t, std::shared_ptr<Message>>> offered_;
};

}  // namespace tutti
