// The queue pairs of a link and what both directions have of them: credits, memory windows, and the first failure.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transport/verbs/queue_pair.h"

namespace tutti::verbs {

/// The 32 bits that travel with each write: which piece of which message it is, and how many slots are free again.
/// Queue pairs have no common order, so each write says what it is: a piece of a message, several small messages
/// (`packed`), credits alone (`credit_only`), or an invitation to the message (both).
struct Immediate {
  static constexpr std::uint32_t messages = 1 << 12;  ///< message numbers wrap around here
  static constexpr std::uint32_t pieces_max = 8;      ///< of one message
  static constexpr std::uint32_t credits_max = (1 << 11) - 1;

  bool credit_only = false;   ///< carries no message
  bool packed = false;        ///< carries several small messages, of which `message` is the last
  std::uint32_t message = 0;  ///< its number, modulo `messages`
  std::uint32_t piece = 0;
  std::uint32_t last = 0;     ///< number of the message's last piece
  bool direct = false;        ///< the piece lies in the memory to which the receiver invited the message
  std::uint32_t credits = 0;  ///< messages of the other direction released since the last write

  constexpr std::uint32_t pack() const {
    return (credit_only ? 1u << 31 : 0u) | (packed ? 1u << 30 : 0u) | message % messages << 18 | piece << 15 |
           last << 12 | (direct ? 1u << 11 : 0u) | credits;
  }
  constexpr bool is_invitation() const { return credit_only && packed; }
  static constexpr Immediate unpack(std::uint32_t word) {
    return {.credit_only = (word >> 31) != 0,
            .packed = (word >> 30 & 1) != 0,
            .message = word >> 18 & (messages - 1),
            .piece = word >> 15 & (pieces_max - 1),
            .last = word >> 12 & (pieces_max - 1),
            .direct = (word >> 11 & 1) != 0,
            .credits = word & credits_max};
  }
};

inline constexpr std::size_t queue_pairs_max = 8;
/// Receives for writes that carry credits alone: each reports half of the ring, so no more than two are under way.
inline constexpr std::uint32_t credit_receives = 4;
/// Their requests leave the queue when later completions are seen, so there is space for more.
inline constexpr std::uint32_t credit_sends = 32;
/// Requests for an invitation: to open a window, to tell of it, and to close it.
inline constexpr std::uint32_t invitation_sends = 3;
/// By slot of the ring. Between two messages of this end, the peer can tell of invitations for twice as many messages
/// as the ring has slots: for those that leave meanwhile, and for those after them.
inline constexpr std::uint32_t invitation_receives = 2;

/// Memory at the other end into which a message is written; as a receiver tells it in an invitation.
struct Destination {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t bytes = 0;  ///< may be less than the message has: the rest does not matter
};

/// Equal at both ends.
struct LinkShape {
  int slots = 4;  ///< that plans rely on
  std::size_t slot_bytes = 128 * 1024;
  int queue_pairs = 1;

  std::uint32_t ring_slots() const { return 2 * static_cast<std::uint32_t>(slots); }
  /// The ring's memory: its slots, and behind them the area where the other end tells of its invitations.
  std::size_t ring_bytes() const {
    return ring_slots() * (slot_bytes + static_cast<std::size_t>(queue_pairs) * sizeof(Destination));
  }
  std::size_t slot_at(std::uint64_t message) const { return message % ring_slots() * slot_bytes; }
  std::size_t invitation_at(std::uint64_t message) const;
  /// A long message travels in pieces, over all queue pairs, so that its beginning can be used before its end is here.
  std::size_t piece_bytes() const;
  std::uint32_t pieces(std::size_t bytes) const {
    return bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes + piece_bytes() - 1) / piece_bytes());
  }
  /// Of one queue pair: what a message and a report of credits may need.
  std::uint32_t space_needed() const { return pieces(slot_bytes) + credit_receives; }
  /// Of one queue pair: work requests under way, and receives posted at a time.
  std::uint32_t sends() const { return ring_slots() * (pieces(slot_bytes) + invitation_sends) + credit_sends; }
  std::uint32_t receives() const { return ring_slots() * (pieces(slot_bytes) + invitation_receives) + credit_receives; }
  /// Where requests have headers of their own, those that are flushed by a failure take twice the space.
  std::size_t completions(bool iwarp) const { return std::size_t{sends()} * (iwarp ? 2 : 1) + receives(); }
  bool operator==(const LinkShape&) const = default;
};

/// What one end tells the other.
struct LinkAddress {
  LinkShape shape;
  PortAddress port;
  std::array<QueueAddress, queue_pairs_max> queues{};
  std::uint64_t ring = 0;  ///< address of the ring, for the other end's writes
  std::uint32_t rkey = 0;
};

/// Driven by one thread at a time, after `connect`. It never fails twice: `error` is what came first.
class LinkQueues {
 public:
  /// How far each queue pair must be for what was added to it to be done.
  using Marks = std::array<std::uint32_t, queue_pairs_max>;

  /// `peer` is for error messages.
  LinkQueues(std::shared_ptr<Endpoint> endpoint, const LinkShape& shape, Owner peer)
      : endpoint_(std::move(endpoint)), shape_(shape), peer_(std::move(peer)) {}
  /// Their completions go to `sink`. Errors: system.
  Result<void> create(const QueueShape& queues, std::uint32_t sink);
  LinkAddress address(const RegisteredMemory& ring) const;
  /// Errors: system, remote (an address that cannot be right).
  Result<void> connect(const LinkAddress& peer);

  Endpoint& endpoint() const { return *endpoint_; }
  const Owner& peer() const { return peer_; }
  std::span<const std::unique_ptr<QueuePair>> all() const { return queues_; }
  QueuePair& of(std::uint64_t message) const { return *queues_[message % queues_.size()]; }
  /// That place in the peer's ring.
  Destination in_ring(std::size_t at) const { return {.address = to_.ring + at, .key = to_.rkey}; }

  bool are_past(const Marks& marks) const;
  /// Space for all pieces of a message and a report of credits, on each.
  bool have_space() const;
  bool have_waiting() const;

  /// Slots that are free, and of which the next write tells the peer.
  void owe(std::uint32_t slots) { owed_ += slots; }
  std::uint32_t owed() const { return owed_; }
  /// Adds a write that carries `immediate` and the credits. Requires space.
  void add(QueuePair& queue, QueuePair::Write write, Immediate immediate) {
    immediate.credits = std::exchange(owed_, 0);
    write.immediate = immediate.pack();
    queue.add(write);
  }
  /// Posts what was added. False: a device has no space yet. Errors: those of the link, which then has failed.
  Result<bool> post();
  /// One queue pair alone, at once.
  Result<void> post(QueuePair& queue);
  Result<void> post_receives();

  /// Whether there are windows into which messages can be invited.
  bool opens_windows() const { return opens_windows_; }
  /// That of a message, null before it is made: as many messages as the ring has slots can be invited while the windows
  /// of as many are being closed.
  MemoryWindow* window(std::uint64_t message) const { return windows_[message % windows_.size()].get(); }
  /// False: the device has no more.
  bool make_window(std::uint64_t message);

  const std::optional<Error>& error() const { return error_; }
  /// Nothing arrives or leaves afterwards: the memory may be used again.
  void fail(const Error& error);
  /// The connection has failed.
  Error broken(std::string why) const;

 private:
  Error refused_here(const Error& error);

  std::shared_ptr<Endpoint> endpoint_;
  LinkShape shape_;
  Owner peer_;
  std::vector<std::unique_ptr<QueuePair>> queues_;
  std::vector<std::unique_ptr<MemoryWindow>> windows_;  // end before the queue pairs
  bool opens_windows_ = false;
  LinkAddress to_;
  std::uint32_t owed_ = 0;
  std::optional<Error> error_;
};

}  // namespace tutti::verbs
