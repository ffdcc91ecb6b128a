// Memory of a rank's GPU that all ranks of other processes have mapped since the start, and theirs as mapped here.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda/peer_memory.h"

namespace tutti::cuda {

/// Serves buffers that peers have not mapped yet, or cannot map: their bytes are copied here.
struct PeerArena {
  DeviceMemory own;
  std::vector<PeerMapping> of;  ///< by rank; none of ranks of this process
};

}  // namespace tutti::cuda
