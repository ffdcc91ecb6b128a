// The board on which a rank offers allocations of its GPU to the other ranks of its host: in its shared area.
//
// A place is offered (its version is odd) and withdrawn (even) in turn. Every other rank follows each change, by
// mapping or unmapping the allocation unless it is in the same process, and then counts itself among the answers; also
// if it could not map it, as the owner may have freed it meanwhile. The owner changes a place only when all have
// answered the last change, so nobody ever reads a place that is being written.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/limits.h"
#include "cuda/driver_types.h"

namespace tutti::cuda {

struct BufferBoard {
  static constexpr std::uint32_t places_max = 256;
  struct alignas(2 * limits::line_bytes) Place {
    std::atomic<std::uint32_t> version;
    std::atomic<std::uint32_t> answers;   ///< to this version
    std::atomic<std::uint32_t> refusals;  ///< those of ranks that could not map it
    std::uint64_t id;                     ///< of the allocation
    std::uint64_t bytes;
    std::uint64_t base;  ///< its address, for ranks of the same process
    IpcHandle handle;
  };
  std::atomic<std::uint32_t> changes;  ///< of all versions together
  Place places[places_max];

  static constexpr bool offered(std::uint32_t version) { return version % 2 != 0; }
};

/// Part of an offered allocation, as a call descriptor names it.
struct SharedLocation {
  /// In place of a place: the arena that all ranks have mapped since the start.
  static constexpr std::uint32_t arena = BufferBoard::places_max;

  std::uint32_t place = 0;
  std::uint32_t version = 0;  ///< 0: other processes cannot access it; of the arena always 1
  std::uint64_t offset = 0;
  std::uint64_t address = 0;  ///< for ranks of the same process; 0: no buffer
};

}  // namespace tutti::cuda
