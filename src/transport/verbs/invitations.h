// Messages that are written into memory of their receiver's caller: the receiver opens a window on it and tells the
// sender where it is, and closes the window when it has released the message.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "transport/verbs/link_queues.h"

namespace tutti::verbs {

/// Those by this end, for messages to come.
class Invitations {
 public:
  struct Invitation {
    bool given = false;  // and the message is not yet over
    std::uint64_t message = 0;
    std::span<std::byte> memory;
    Destination destination;
  };

  /// The queues must outlive this.
  Invitations(LinkQueues& queues, const LinkShape& shape)
      : queues_(queues), shape_(shape), invitations_(std::size_t{2} * shape.ring_slots()) {}

  /// The invitation for a message; null: there is none.
  const Invitation* of(std::uint64_t message) const {
    const Invitation& one = invitations_[message % invitations_.size()];
    return one.given && one.message == message ? &one : nullptr;
  }
  /// False: an earlier window has yet to be closed, or a queue has no space.
  bool may_give(std::uint64_t message) const {
    return is_closed(message) && queues_.of(message).space() >= invitation_sends + shape_.space_needed();
  }
  /// Tells the peer at once: a late invitation is of no use. False: not into this memory, or the link has failed.
  bool give(std::uint64_t message, std::span<std::byte> memory);
  /// Closes the windows of messages up to `granted`, which are complete and released.
  void close(std::uint64_t granted);
  /// Whether this holds for all messages up to `taken`, and nothing can be written there any more.
  bool all_closed(std::uint64_t taken) const;

 private:
  bool is_closed(std::uint64_t message) const {
    const MemoryWindow* const window = queues_.window(message);
    return window == nullptr || window->is_closed();
  }

  LinkQueues& queues_;
  LinkShape shape_;
  std::vector<Invitation> invitations_;  // by message, as the windows
  std::uint64_t closed_ = 0;             // messages without an invitation that is still to be taken back
};

/// Those by the peer, for messages to be sent.
class PeerInvitations {
 public:
  /// `ring`: of this end; the peer writes its invitations behind the slots.
  PeerInvitations(const LinkShape& shape, const std::byte* ring)
      : shape_(shape), ring_(ring), invitations_(shape.ring_slots()) {}

  /// What the peer has written about the message with this number modulo Immediate::messages. `committed`: messages so
  /// far. False: no such invitation can come now.
  bool take(std::uint32_t message, std::uint64_t committed);
  /// Where the peer wants the message to be written; null: into its slot.
  const Destination* of(std::uint64_t message) const {
    const Invitation& one = invitations_[message % invitations_.size()];
    return one.valid && one.message == message ? &one.destination : nullptr;
  }

 private:
  struct Invitation {
    bool valid = false;
    std::uint64_t message = 0;
    Destination destination;
  };

  LinkShape shape_;
  const std::byte* ring_;
  std::vector<Invitation> invitations_;  // by slot of the peer's ring
};

}  // namespace tutti::verbs
