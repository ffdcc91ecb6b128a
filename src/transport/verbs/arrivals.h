// What has arrived in the ring of a link's end: which pieces of which messages, and which slots are free again.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "transport/verbs/link_queues.h"

namespace tutti::verbs {

/// Messages of up to so many bytes that leave together are one write.
inline constexpr std::size_t small_bytes = 64;
/// Length of what precedes them: their number, and the length of each, as 32-bit words; a multiple of 8.
constexpr std::size_t packed_header(std::size_t messages) {
  return (messages + 2) / 2 * 8;
}

/// Messages arrive in any order; they are taken, and their slots freed, in order. All that a peer writes or says is
/// checked before it is used.
class Arrivals {
 public:
  struct Message {
    std::uint32_t pieces = 0;  // bit by bit
    std::uint32_t last = 0;    // number of the last piece, once any is here
    std::size_t bytes = 0;
    const std::byte* at = nullptr;  // null: at the beginning of its slot
    bool direct = false;            // in the memory to which it was invited
    bool complete() const { return pieces != 0 && pieces == (2u << last) - 1; }
  };

  Arrivals(const LinkShape& shape, const std::byte* ring) : shape_(shape), ring_(ring), messages_(shape.ring_slots()) {}

  std::uint64_t taken() const { return taken_; }
  std::uint64_t granted() const { return granted_; }
  const Message& operator[](std::uint64_t number) const { return messages_[number % messages_.size()]; }
  const std::byte* slot(std::uint64_t number) const { return ring_ + shape_.slot_at(number); }
  const std::byte* data(std::uint64_t number) const {
    const std::byte* const at = (*this)[number].at;
    return at != nullptr ? at : slot(number);
  }
  /// Otherwise the slot still belongs to a message that was taken before all of it was here.
  bool has_space_for_next() const { return taken_ - granted_ < shape_.ring_slots(); }

  /// The message with a number modulo Immediate::messages. Nothing: no such message can come now.
  std::optional<std::uint64_t> number_of(std::uint32_t message) const {
    const std::uint32_t ahead =
        (message - static_cast<std::uint32_t>(granted_ % Immediate::messages)) % Immediate::messages;
    if (ahead >= shape_.ring_slots()) return std::nullopt;
    return granted_ + ahead;
  }
  /// `room`: how long the message may be. False: such a piece cannot come now.
  bool place(std::uint64_t number, const Immediate& immediate, std::size_t bytes, std::size_t room) {
    Message& message = at(number);
    const std::uint32_t bit = 1u << immediate.piece;
    const bool fits = immediate.piece == immediate.last ? bytes <= shape_.piece_bytes() : bytes == shape_.piece_bytes();
    const bool is_next = message.pieces == 0 || (message.last == immediate.last && message.direct == immediate.direct);
    if (!fits || message.bytes + bytes > room || (message.pieces & bit) != 0 || !is_next) return false;
    message.pieces |= bit;
    message.direct = immediate.direct;
    message.last = immediate.last;
    message.bytes += bytes;
    return true;
  }
  /// The messages of one write, of which `last` is the last. The peer could change them while they are read, so each
  /// word is read once.
  bool unpack(std::uint64_t last, std::size_t bytes) {
    std::array<std::uint32_t, QueuePair::pieces_max> header{};
    const std::byte* const from = slot(last);
    std::memcpy(header.data(), from, std::min(bytes, sizeof header));
    const std::size_t count = header[0];
    if (count < 2 || count >= header.size() || count > last + 1 - granted_) return false;
    std::size_t begin = packed_header(count);
    for (std::size_t i = 0; i < count; ++i) {
      Message& message = at(last + 1 - count + i);
      const std::size_t length = header[i + 1];
      if (message.pieces != 0 || length > small_bytes) return false;
      message = {.pieces = 1, .last = 0, .bytes = length, .at = from + begin};
      begin += length;
    }
    return begin == bytes && bytes <= shape_.slot_bytes;
  }

  /// How many bytes of [from, from + bytes) of the next message to be taken are here, without a gap.
  std::size_t here(std::size_t from, std::size_t bytes) const {
    const std::uint32_t pieces = (*this)[taken_].pieces;
    std::size_t end = from;
    while (end < from + bytes && (pieces >> (end / shape_.piece_bytes()) & 1) != 0)
      end = std::min(from + bytes, (end / shape_.piece_bytes() + 1) * shape_.piece_bytes());
    return end - from;
  }

  void take() { ++taken_; }
  /// Slots of messages that were taken and are complete are free, in order. Returns how many more have become so.
  std::uint32_t grant() {
    std::uint32_t more = 0;
    for (; granted_ < taken_ && at(granted_).complete(); ++granted_, ++more) at(granted_) = {};
    return more;
  }

 private:
  Message& at(std::uint64_t number) { return messages_[number % messages_.size()]; }

  LinkShape shape_;
  const std::byte* ring_;
  std::vector<Message> messages_;  // by slot of the ring
  std::uint64_t taken_ = 0;
  std::uint64_t granted_ = 0;  // of them complete, so that their slots are free
};

}  // namespace tutti::verbs
