// One direction of data flow to a peer: a ring of fixed slots. Every transport has the four verbs of a sender and the
// four of a receiver; what only some can do are interfaces of their own, which they give out or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/host.h"
#include "base/system.h"

namespace tutti {

/// What a peer has done with the messages that were committed.
enum class Settled { not_yet, all, refused_last };

/// For senders that can send blocks from where they are, instead of from a copy in a slot.
class Offering {
 public:
  /// Has bytes [at, at + memory.size()) of the acquired slot read from the caller's memory while the message leaves, or
  /// by the peer itself, or by a device; the caller does not fill them. The memory must not change until flush returns
  /// true, unless `keep` is called before the change. A second offer for the same `at` replaces the first. False: not
  /// this memory, or too many offers in one message; fill the slot.
  virtual bool offer(std::size_t at, std::span<const std::byte> memory) = 0;

  /// True: `memory` may change now; offered parts of it that have not left yet were copied into their slots. False: the
  /// peer has yet to read some of it; ask again.
  virtual bool keep(std::span<const std::byte> memory) = 0;

  /// Whether `keep` becomes true without the peer's program: it copies, or a device reads. Otherwise only memory may be
  /// offered that does not change before the peer has read it, where the peer waits for nothing that comes after the
  /// change (see outlasting.h).
  virtual bool copies_offers() const { return true; }

 protected:
  ~Offering() = default;
};

/// Never blocks. Called by one thread at a time: the one that drives the communicator.
class Sender {
 public:
  virtual ~Sender() = default;

  /// An empty slot of slot_bytes() to fill; an empty span if none is free. Until commit, further calls return the same
  /// slot. Errors: remote (the peer is gone), timeout.
  virtual Result<std::span<std::byte>> acquire() = 0;

  /// Publishes the first `bytes` of the acquired slot, which the caller may no longer touch. The message leaves with
  /// the next flush at the latest.
  virtual Result<void> commit(std::size_t bytes) = 0;

  /// Sends as many committed messages as can leave now. True when none waits in this process any more. Until then the
  /// caller must call flush again, even if everything else is blocked; otherwise the peer waits forever.
  virtual Result<bool> flush() { return true; }

  /// All: the peer has released all committed messages; on transports that cannot know, they have left this process.
  virtual Result<Settled> settled() = 0;

  virtual std::size_t slot_bytes() const = 0;

  /// Null: every block has to be written into a slot. Always the same.
  virtual Offering* offering() { return nullptr; }

  /// Adds the handles to wait for until flush can make progress; none for transports that ring the rank's doorbell.
  virtual void poll_set(std::vector<PollItem>&) const {}
};

/// The answer to an invitation; later: ask again, no: not for this message.
enum class Invited { yes, later, no };

/// What may still come from a peer whose process has ended.
struct Coming {
  /// Counts the bytes that have come, those of messages that are not complete too: they show that a slow connection
  /// goes on.
  std::uint64_t bytes = 0;
  /// What was sent comes within milliseconds, or not at all: a device brings it, or the connection is not even open.
  bool at_once = false;
};

/// For receivers on which a message arrives piece by piece, so that its beginning can be used before its end has
/// arrived, and its bytes can go where the caller wants them.
class Landing {
 public:
  /// Replaces Receiver::peek: opens the next message before any of it has arrived. The span is the message's place,
  /// valid as far as `arrived` says; null while the previous message is still to be read from the connection. May be
  /// released at any time.
  virtual Result<std::span<const std::byte>> expect(std::size_t bytes) = 0;

  /// How many bytes of [at, at + bytes) of the expected message have arrived, from `at` on without a gap. An error
  /// where some have and the rest will not.
  virtual Result<std::size_t> arrived(std::size_t at, std::size_t bytes) = 0;

  /// As arrived, but the bytes go into the caller's memory instead of the span of expect. Until all of them have
  /// arrived, the caller must repeat the call with the same arguments and ask for nothing else.
  virtual Result<std::size_t> land(std::size_t at, std::span<std::byte> into) = 0;

  /// Lets the peer write the first memory.size() bytes of a message into the caller's memory: of the message `ahead`
  /// messages behind the oldest one not yet released. The caller must not touch the memory until it has received the
  /// message by `land` with at = 0 and this memory, in which the message may arrive from now on.
  virtual Invited invite(std::size_t /*ahead*/, std::span<std::byte> /*memory*/) { return Invited::no; }

  /// True once no message that was released can still be written into memory to which it was invited: a connection that
  /// has failed writes nothing.
  virtual bool closed() { return true; }

  /// Until further notice, messages are long and go where `land` says: a read of one takes no bytes of the next. A
  /// hint, for transports without headers.
  virtual void read_ahead(bool /*on*/) {}

  /// See Coming.
  virtual Coming coming() const { return {}; }

 protected:
  ~Landing() = default;
};

/// A block in its sender's memory. With a `pid` it is an address of that process, from which it can only be copied.
struct OfferedBlock {
  std::span<const std::byte> at;
  ForeignProcess process = {};
};

/// For receivers whose peers offer blocks that this rank reads itself (Offering without copies).
class Offers {
 public:
  /// The part of the peeked message from `at` on that the peer has offered instead of filling its slot: where it can be
  /// read until release. A null span: it lies in the slot. Errors: remote, system (the peer's memory cannot be mapped).
  virtual Result<OfferedBlock> offered(std::size_t at) = 0;

 protected:
  ~Offers() = default;
};

/// Never blocks, as a sender.
class Receiver {
 public:
  virtual ~Receiver() = default;

  /// The oldest message not yet released, once it has arrived completely; until then a null span (data() == nullptr).
  /// `bytes` is the length the caller expects. Transports without headers separate messages by it. Transports with
  /// headers return the length that the peer wrote, at most a slot's, and leave the comparison to the caller. Until
  /// release, further calls with the same `bytes` return the same message.
  virtual Result<std::span<const std::byte>> peek(std::size_t bytes) = 0;

  /// Returns the peeked slot to the peer. Errors: remote (the peer has left its call, so what it offered may have
  /// changed while it was read).
  virtual Result<void> release() = 0;

  /// As release, and tells the peer, which must look for it, that this rank cannot do what the message asks for.
  virtual Result<void> refuse() { return Error{.what = "a message that cannot be refused"}; }

  /// True once nothing of the released messages is still to be read, also of what nobody asked for. The kernel cuts a
  /// connection of a process that ends before that, and what the process has sent is lost. True too once the connection
  /// has ended. Errors: remote (what came is not what the peer sent).
  virtual Result<bool> drained() { return true; }

  /// Null: messages arrive as a whole. Always the same.
  virtual Landing* landing() { return nullptr; }

  /// Null: all of a message lies in its slot. Always the same.
  virtual Offers* offers() { return nullptr; }

  /// Adds the handles to wait for until the message last asked for, Landing::closed or `drained` can make progress;
  /// none for transports that ring the rank's doorbell.
  virtual void poll_set(std::vector<PollItem>&) const {}
};

/// Whether a change of `b` may change what was offered of `a`.
inline bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::less<>()(a.data(), b.data() + b.size()) && std::less<>()(b.data(), a.data() + a.size());
}

/// See Offering::keep.
inline bool kept(Sender& sender, std::span<const std::byte> memory) {
  Offering* const offering = sender.offering();
  return offering == nullptr || offering->keep(memory);
}

inline Coming coming(Receiver& receiver) {
  const Landing* const landing = receiver.landing();
  return landing == nullptr ? Coming{} : landing->coming();
}

/// Of a sender that cannot know what its peer has read: what has left this process counts.
inline Result<Settled> settled_when(Result<bool> all_has_left) {
  if (!all_has_left) return std::move(all_has_left).error();
  return *all_has_left ? Settled::all : Settled::not_yet;
}

}  // namespace tutti
