// Memory of a rank's GPU that all other ranks of its communicator have mapped since the start.
#pragma once

#include <cstddef>
#include <variant>
#include <vector>

#include "cuda/peer_memory.h"
#include "cuda/virtual_memory.h"

namespace tutti::cuda {

/// Begins with what the start proves access by. Then follow the areas by which kernels meet (SyncMemory), zeroed but
/// for their slots, and then room for copies of buffers that peers have not mapped yet, or cannot map.
struct PeerArena {
  static constexpr std::size_t area_offset = 8192;

  std::variant<DeviceMemory, VirtualMemory> own;
  std::size_t copies_offset = 0;                             ///< equal on all ranks
  std::size_t bytes = 0;                                     ///< of each rank's arena, or a little less
  std::vector<std::variant<PeerMapping, VirtualMemory>> of;  ///< by rank: of other processes
  std::vector<std::byte*> at;  ///< by rank: its arena at an address of this rank's GPU; null: not reached
};

}  // namespace tutti::cuda
