// One direction of data flow to a peer, as a ring of fixed slots: the same four verbs on every wire.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/system.h"

namespace tutti {

/// Never blocks. Called by one thread at a time: the one that drives the communicator.
class Sender {
 public:
  virtual ~Sender() = default;

  /// An empty slot of slot_bytes() to fill; an empty span while there is none. Asking again before commit gives the
  /// same slot. Errors: remote (the peer is gone), timeout.
  virtual Result<std::span<std::byte>> acquire() = 0;

  /// Publishes the first `bytes` of the acquired slot, which is no longer the caller's. It leaves with the next flush
  /// at the latest.
  virtual Result<void> commit(std::size_t bytes) = 0;

  /// Sends what was committed as far as that goes now. True when none of it waits in this process any more: until then
  /// somebody has to call again, whatever else is blocked, or the peer waits for ever.
  virtual Result<bool> flush() { return true; }

  /// True when the peer has released all that was committed; on wires that cannot know, when it has left this process.
  virtual Result<bool> settled() = 0;

  virtual std::size_t slot_bytes() const = 0;

  /// Instead of filling bytes [at, at + memory.size()) of the acquired slot: they are read from the caller's memory
  /// while the message leaves. So it must stay as it is until flush says that all has left, or be kept before it
  /// changes. Offering the same `at` again replaces. False: not on this wire, or too many in one message; fill the
  /// slot.
  virtual bool offer(std::size_t /*at*/, std::span<const std::byte> /*memory*/) { return false; }

  /// Copies what was offered of `memory` and has not left yet into its slot: from here on `memory` may change.
  virtual void keep(std::span<const std::byte> /*memory*/) {}

  /// True for wires with slots: a committed message leaves without the receiver's help, so that a plan need not settle,
  /// and a fused plan, which has committed for later steps already, must not.
  virtual bool buffers() const { return true; }

  /// Adds the handles to sleep on until flush can do more; none for wires that ring the rank's doorbell.
  virtual void poll_set(std::vector<PollItem>&) const {}
};

class Receiver {
 public:
  virtual ~Receiver() = default;

  /// The oldest message not yet released, once all of it is here; a null span (data() == nullptr) until then. `bytes`
  /// is how long the caller knows it to be, which is what tells messages apart on wires without headers; wires with
  /// them give the length that the peer wrote, never more than a slot's, and leave the comparison to the caller. Asking
  /// again before release, with the same `bytes`, gives the same message.
  virtual Result<std::span<const std::byte>> peek(std::size_t bytes) = 0;

  /// Gives the peeked slot back to the peer.
  virtual Result<void> release() = 0;

  /// True for wires on which a message comes bit by bit, so that its first part can be used before the last is here:
  /// by expect, arrived and land, which others do not have.
  virtual bool arrives_in_parts() const { return false; }

  /// In the place of peek: opens the next message, before anything of it is here. The span is where it will be, part by
  /// part, as far as arrived says; null while the message before is still to be taken from the wire. Released at any
  /// time.
  virtual Result<std::span<const std::byte>> expect(std::size_t /*bytes*/) { return std::span<const std::byte>(); }

  /// How many bytes of [at, at + bytes) of the expected message are here, from `at` on without a gap.
  virtual Result<std::size_t> arrived(std::size_t /*at*/, std::size_t bytes) { return bytes; }

  /// The same, but they go into the caller's memory, and not where expect said. To be asked again with the same, and
  /// for nothing else, until all of it is there.
  virtual Result<std::size_t> land(std::size_t /*at*/, std::span<std::byte> into) { return into.size(); }

  /// Adds the handles to sleep on until the message last asked for can go on; none for wires that ring the rank's
  /// doorbell.
  virtual void poll_set(std::vector<PollItem>&) const {}
};

}  // namespace tutti
