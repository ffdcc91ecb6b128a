// The layout of a rank's area: header, call descriptors, flags, counters and slots.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/enumeration.h"
#include "transport/call_descriptor.h"
#include "transport/call_summary.h"
#include "transport/flag.h"

namespace tutti {

/// Equal on all ranks of a communicator. The area is sparse: a page exists once it is touched.
struct AreaShape {
  int ranks = 1;
  int channels = 1;  ///< those of collectives, one for point to point, one for messages with tags
  int slots = 4;     ///< per channel and peer
  std::size_t slot_bytes = 128 * 1024;
  std::size_t payload_bytes = 16 * 1024;  ///< of one call descriptor
};

/// lost, silent: only of a rank of another host, whose own area never has these states. lost: its connection has ended,
/// but what it sent before may still arrive; silent: it gives no sign of life. damaged: no rank has this state; it
/// stands for a number that is none.
enum class RankState : std::uint32_t {
  starting = 0,
  open = 1,
  failed = 2,
  aborted = 3,
  closed = 4,
  lost = 5,
  silent = 6,
  damaged = 7,
  last = damaged
};

/// Whether the rank has ended, or is taken to have ended, otherwise than by leaving.
constexpr bool has_failed(RankState state) {
  switch (state) {
    case RankState::failed:
    case RankState::aborted:
    case RankState::lost:
    case RankState::silent:
    case RankState::damaged: return true;
    case RankState::starting:
    case RankState::open:
    case RankState::closed: break;
  }
  return false;
}

struct AreaHeader {
  static constexpr std::uint64_t magic_value = 0x3165'7261'6974'7574;  // "tutiare1"
  std::uint64_t magic;
  std::uint64_t bytes;
  std::uint64_t life;  ///< drawn by the owner: by it peers that copy its memory know that it is still the same program
  std::atomic<RankState> state;        ///< peers read it with state_now
  std::atomic<std::uint32_t> failure;  ///< Code of the first error, valid once state is failed
  std::atomic<std::int32_t> culprit;   ///< the rank that the error names, or −1
  std::atomic<std::uint32_t> gpu;      ///< number of the rank's GPU in its process, from 1; 0: none
  /// Once state is failed. 1: the communicator has ended for all ranks. 0: a rank was lost, which ends only what needs
  /// that rank, or this one.
  std::atomic<std::uint32_t> ends_all;
  /// Number of this rank's calls that may touch memory of ranks of its own process. On a cache line of its own: every
  /// large call changes this counter and reads the peers' states.
  alignas(limits::line_bytes) std::atomic<std::uint32_t> touching;
  Doorbell doorbell;
  /// Number of the last collective call that this rank has completed. Written after each call, and read only where the
  /// rank has ended or failed: on a cache line of its own.
  alignas(limits::line_bytes) std::atomic<std::uint64_t> completed;
  alignas(limits::line_bytes)
      SharedCallSummary calls;         ///< where ranks have no call descriptors: this rank's calls so far
  std::atomic<std::uint32_t> answers;  ///< counts its answers to this rank's questions
  std::atomic<std::uint32_t> beats;    ///< counts the beats of the rank's service thread
  std::atomic<std::uint32_t> traced;   ///< 1: a debugger is attached, so the rank may be silent
  std::atomic<std::uint32_t> waits;    ///< for which rank it waits in a call: see comm/waits.h
  std::atomic<std::uint32_t> gave_up;  ///< rights to reach memory of other processes: see given_up_rights.h
  std::array<char, 2048> message;      ///< text of the error; written before state

  RankState state_now() const {
    const auto number = static_cast<std::uint32_t>(state.load(std::memory_order_acquire));
    return enumerator<RankState>(number).value_or(RankState::damaged);
  }
};

/// What the sender says about the message in a slot; written before the message is published.
struct SlotHead {
  std::uint32_t bytes;   ///< length
  std::uint32_t offers;  ///< bit i: an Offer lies at the beginning of the slot's i-th piece (see shm.h)
  /// Written by the receiver. 1: it may not read the sender's memory, so what is offered there must go through slots
  std::uint32_t wanted;
};

/// Everything that one peer writes here on one channel. The heads of its messages follow, one per slot.
struct alignas(2 * limits::line_bytes) PeerFlags {
  Flag signal;
  Flag filled;  ///< number of its messages so far
  Flag freed;   ///< number of messages to it that it has released
};

/// One rank's area as mapped in this process. Offsets are computed, never read from the area. Areas are zero-filled at
/// creation; only `format` writes before peers map them.
class RankArea {
 public:
  RankArea() = default;
  RankArea(std::byte* base, const AreaShape& shape);

  /// SIZE_MAX if the shape is larger than a process can address.
  static std::size_t bytes(const AreaShape& shape) { return Layout(shape).bytes; }
  void format();
  /// False when the memory was not written by `format` for this shape.
  bool valid() const { return header().magic == AreaHeader::magic_value && header().bytes == layout_.bytes; }

  const AreaShape& shape() const { return shape_; }
  AreaHeader& header() const { return *reinterpret_cast<AreaHeader*>(base_); }
  std::byte* call_descriptors() const;
  PeerFlags& flags(int channel, int peer) const;
  std::byte* slot(int channel, int peer, std::uint64_t message) const;  ///< in the receiver's area
  SlotHead& slot_head(int channel, int peer, std::uint64_t message) const;
  /// Space for the counts that call `sequence` publishes for each rank, share_bytes per rank. Written and read by the
  /// rules of the call's descriptor.
  std::byte* shares(std::uint64_t sequence) const;
  static constexpr std::size_t share_bytes = 32;
  /// Space in which the rank offers memory of its GPU to peers, and tells how its calls go: a cuda::BufferBoard, and at
  /// the end MessagePathHistory and PathHistory.
  std::byte* device_board() const { return base_ + layout_.device_board; }
  static constexpr std::size_t device_board_bytes = 40 * 1024;

 private:
  struct Layout {
    explicit Layout(const AreaShape& shape);
    std::size_t flags = 0;  // one PeerFlags and its lengths per channel and peer
    std::size_t flags_stride = 0;
    std::size_t slots = 0;
    std::size_t slot_stride = 0;
    std::size_t shares = 0;  // one table per descriptor of the ring; behind what more programs touch
    std::size_t shares_stride = 0;
    std::size_t device_board = 0;
    std::size_t bytes = 0;
  };
  std::size_t pair(int channel, int peer) const;

  std::byte* base_ = nullptr;
  AreaShape shape_;
  Layout layout_{shape_};
};

}  // namespace tutti
