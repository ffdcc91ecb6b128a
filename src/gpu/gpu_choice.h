// Which plan serves a call on device memory.
#pragma once

#include <cstddef>
#include <string_view>

#include "algorithms/algorithm.h"

namespace tutti {

struct GpuChoice {
  const Algorithm* algorithm = nullptr;
  Access access = Access::mapped;
};

/// For a call of ranks that share a GPU, with `bytes` in a group: the same for all sizes of one power of two, and for
/// all roots. `forced` is TUTTI_ALGO's value. `specialised`: kernels for one plan may be used, beside the one that
/// walks any plan.
///
/// All peers' memory is at hand at the same speed, so nothing beats the fewest steps and the fewest bytes: what
/// `select` says of windows. Small all-reduces do without windows and meetings.
GpuChoice choose_on_gpu(const Shape& shape, std::size_t bytes, std::string_view forced, bool specialised);

}  // namespace tutti
