// One direction of data flow to a peer, as a ring of fixed slots: the same four verbs on every wire.
#pragma once

#include <cstddef>
#include <span>

#include "base/error.h"

namespace tutti {

/// Never blocks. Called by one thread at a time: the one that drives the communicator.
class Sender {
 public:
  virtual ~Sender() = default;

  /// An empty slot of slot_bytes() to fill; an empty span while the peer has freed none. Asking again before commit
  /// gives the same slot. Errors: remote (the peer is gone), timeout.
  virtual Result<std::span<std::byte>> acquire() = 0;

  /// Publishes the first `bytes` of the acquired slot. The slot is the peer's from here on.
  virtual Result<void> commit(std::size_t bytes) = 0;

  /// True when the peer has released all that was committed.
  virtual Result<bool> settled() = 0;

  virtual std::size_t slot_bytes() const = 0;

  /// True for wires with slots: a committed message leaves without the receiver's help, so that a plan need not settle,
  /// and a fused plan, which has committed for later steps already, must not.
  virtual bool buffers() const { return true; }
};

class Receiver {
 public:
  virtual ~Receiver() = default;

  /// The oldest message not yet released; a null span (data() == nullptr) while there is none. Never longer than
  /// slot_bytes, whatever the peer wrote. Asking again before release gives the same message.
  virtual Result<std::span<const std::byte>> peek() = 0;

  /// Gives the peeked slot back to the peer.
  virtual Result<void> release() = 0;
};

}  // namespace tutti
