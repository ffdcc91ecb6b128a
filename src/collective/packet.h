// Packets between two mailboxes: a header and a payload, in as many slots as they need. Between hosts slots carry no
// length, so there the header has a slot of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/enumeration.h"
#include "collective/message.h"
#include "collective/sender_memory.h"
#include "transport/fifo.h"

namespace tutti {

enum class PacketKind : std::uint32_t { small = 1, offer, wanted, data, taken, first = small, last = taken };

/// From a peer; sound once ArrivingPacket has looked at it.
struct PacketHeader {
  static constexpr std::size_t small_bytes_max = 16 * 1024;
  Unchecked<PacketKind> kind;
  std::uint32_t type = 0;
  std::int32_t tag = 0;
  std::uint64_t bytes = 0;  ///< of the message
  std::uint64_t id = 0;     ///< of an offer, for what is said of it
  Carried carried;          ///< of an offer

  static PacketHeader of(PacketKind kind, const MessageEnvelope& envelope) {
    return {
        .kind = kind, .type = static_cast<std::uint32_t>(envelope.type), .tag = envelope.tag, .bytes = envelope.bytes};
  }
  bool has_payload() const { return kind == PacketKind::small || kind == PacketKind::data; }
};

/// A packet that makes no sense.
Error nonsense(std::string_view what);

/// The packet that comes from a peer, or came last.
class ArrivingPacket {
 public:
  enum class Piece { none, first, further };

  /// Looks for the next piece. The header comes with the first. Errors: remote (it cannot be read).
  Result<Piece> peek(Receiver& receiver, bool remote, std::size_t slot_bytes);
  const PacketHeader& header() const { return header_; }
  /// Where its payload goes.
  void goes_to(std::byte* into) { into_ = into; }
  /// Copies the piece that was found, and releases its slot. Errors: remote (it is too long).
  Result<void> take(Receiver& receiver);

  /// More of it is to come.
  bool begun() const { return begun_; }

 private:
  Result<void> check(bool remote) const;

  bool begun_ = false;
  PacketHeader header_;
  std::span<const std::byte> piece_;
  std::size_t moved_ = 0;
  std::byte* into_ = nullptr;
};

}  // namespace tutti
