// The memory through which ranks synchronise and exchange data: flags, counters, slots and inboxes of one rank, written
// by its peers. No CUDA here.
//
// An area is one allocation in the rank's device memory to which all its peers can store. Offsets are equal on all
// ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/entries.h"

namespace tutti::device {

/// Sizes of an area. Equal on all ranks of a communicator.
struct Area {
  std::uint32_t ranks = 1;
  std::uint32_t channels = 1;
  std::uint32_t slots = 0;        ///< per ring; 0: no fifos
  std::uint64_t slot_bytes = 0;   ///< a multiple of 16
  std::uint64_t inbox_bytes = 0;  ///< a multiple of 16; 0: no inboxes

  static constexpr std::uint64_t line_bytes = 128;  ///< every polled word has a line of its own
  static constexpr std::uint64_t words = 3;         ///< per channel and peer: flag, committed, released

  constexpr std::uint64_t links() const { return std::uint64_t{channels} * ranks; }
  constexpr std::uint64_t ring_bytes() const { return slots * slot_bytes; }
  constexpr std::uint64_t bytes() const { return zeroed_bytes() + links() * ring_bytes(); }
  /// What must be zero before any peer knows of the area: all but the slots, which come last.
  constexpr std::uint64_t zeroed_bytes() const { return links() * (words * line_bytes + 2 * inbox_bytes); }

  /// Offsets of the words that `peer` writes on `channel`.
  constexpr std::uint64_t word(std::uint32_t channel, std::uint32_t peer, std::uint64_t which) const {
    return (index(channel, peer) * words + which) * line_bytes;
  }
  constexpr std::uint64_t inbox(std::uint32_t channel, std::uint32_t peer) const {
    return links() * words * line_bytes + index(channel, peer) * 2 * inbox_bytes;
  }
  constexpr std::uint64_t ring(std::uint32_t channel, std::uint32_t peer) const {
    return zeroed_bytes() + index(channel, peer) * ring_bytes();
  }
  constexpr std::uint64_t index(std::uint32_t channel, std::uint32_t peer) const {
    return std::uint64_t{channel} * ranks + peer;
  }

  /// The link of `rank` to `peer` on `channel`, between their areas at the addresses of the rank's GPU. Counters are
  /// zero.
  Link link(std::uint32_t channel, std::uint32_t rank, std::uint32_t peer, std::byte* mine, std::byte* theirs) const {
    const auto here = [=, this](std::uint64_t which) {
      return reinterpret_cast<std::uint64_t*>(mine + word(channel, peer, which));
    };
    const auto there = [=, this](std::uint64_t which) {
      return reinterpret_cast<std::uint64_t*>(theirs + word(channel, rank, which));
    };
    Link link{};
    link.flag_there = there(0);
    link.flag_here = here(0);
    link.committed_there = there(1);
    link.committed_here = here(1);
    link.released_there = there(2);
    link.released_here = here(2);
    link.slots_there = theirs + ring(channel, rank);
    link.slots_here = mine + ring(channel, peer);
    link.inbox_there = theirs + inbox(channel, rank);
    link.inbox_here = mine + inbox(channel, peer);
    return link;
  }
};

}  // namespace tutti::device
