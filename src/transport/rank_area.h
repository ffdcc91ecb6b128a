// Where everything lies in a rank's shared area: header, call descriptors, flags, counters and slots.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/call_descriptor.h"
#include "transport/call_summary.h"
#include "transport/flag.h"

namespace tutti {

/// Equal on all ranks of a communicator. The area is sparse: pages exist once touched.
struct AreaShape {
  int ranks = 1;
  int channels = 1;  ///< those of collectives and one more for point to point
  int slots = 4;     ///< per channel and peer
  std::size_t slot_bytes = 64 * 1024;
  std::size_t payload_bytes = 16 * 1024;  ///< of one call descriptor
};

/// lost: of a rank of another host, whom nobody can reach any more; its own area never says so.
enum class RankState : std::uint32_t { starting = 0, open = 1, failed = 2, aborted = 3, closed = 4, lost = 5 };

struct AreaHeader {
  static constexpr std::uint64_t magic_value = 0x3165'7261'6974'7574;  // "tutiare1"
  std::uint64_t magic;
  std::uint64_t bytes;
  std::atomic<RankState> state;
  std::atomic<std::uint32_t> failure;  ///< Code of the first error, once state is failed
  std::atomic<std::int32_t> culprit;   ///< rank the error names, or −1
  std::atomic<std::uint32_t> gpu;      ///< of the rank, as its process counts them, from 1; 0: none
  /// Calls of this rank that may touch memory of ranks of its own process; on a line of its own, since every large call
  /// counts here and reads the peers' states.
  alignas(limits::line_bytes) std::atomic<std::uint32_t> touching;
  Doorbell doorbell;
  alignas(limits::line_bytes)
      SharedCallSummary calls;         ///< where ranks have no call descriptors: what this rank has called so far
  std::atomic<std::uint32_t> answers;  ///< to this rank's questions for it: a counter
  std::atomic<std::uint32_t> beats;    ///< of its service thread: a counter
  std::atomic<std::uint32_t> traced;   ///< 1: a debugger looks at it, so it may be silent
  std::array<char, 2048> message;      ///< what the error says; written before state
};

/// All that one peer writes here on one channel; the lengths of its messages follow, one per slot.
struct alignas(2 * limits::line_bytes) PeerFlags {
  Flag signal;
  Flag filled;
  Flag freed;
};

/// One rank's area as mapped in this process. Offsets are computed, never read from the area.
/// Areas are zero-filled at creation; only `format` writes before peers come.
class RankArea {
 public:
  RankArea() = default;
  RankArea(std::byte* base, const AreaShape& shape);

  /// SIZE_MAX when the shape is beyond what a process can address.
  static std::size_t bytes(const AreaShape& shape);
  void format();
  /// False when the memory was not written by `format` for this shape.
  bool valid() const;

  const AreaShape& shape() const { return shape_; }
  AreaHeader& header() const;
  std::byte* call_descriptors() const;
  Flag& signal(int channel, int peer) const;  ///< raised by `peer`
  Flag& filled(int channel, int peer) const;  ///< messages from `peer` so far, written by it
  Flag& freed(int channel, int peer) const;   ///< messages to `peer` it has released, written by it
  std::byte* slot(int channel, int peer, std::uint64_t message) const;  ///< in the receiver's area
  std::uint32_t& slot_length(int channel, int peer, std::uint64_t message) const;
  /// Room for what the call `sequence` tells each rank of its counts, share_bytes for each; it is written and read by
  /// the rules of the call's line.
  std::byte* shares(std::uint64_t sequence) const;
  static constexpr std::size_t share_bytes = 32;

 private:
  struct Layout {
    explicit Layout(const AreaShape& shape);
    std::size_t flags = 0;  // one PeerFlags and its lengths per channel and peer
    std::size_t flags_stride = 0;
    std::size_t slots = 0;
    std::size_t slot_stride = 0;
    std::size_t shares = 0;  // one table per line of the ring; behind all else, as few programs touch it
    std::size_t shares_stride = 0;
    std::size_t bytes = 0;
  };
  PeerFlags& flags(int channel, int peer) const;
  std::size_t pair(int channel, int peer) const;

  std::byte* base_ = nullptr;
  AreaShape shape_;
  Layout layout_{shape_};
};

}  // namespace tutti
