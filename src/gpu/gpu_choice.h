// Chooses the algorithm and the access of a call on device memory.
#pragma once

#include <cstddef>
#include <string_view>

#include "algorithms/choice.h"

namespace tutti {

struct GpuChoice {
  const Algorithm* algorithm = nullptr;
  Access access = Access::mapped;
};

/// Whether a call with `bytes` in a group goes through inboxes, by the kernel `one_shot`. Arguments as of
/// choose_on_gpu.
bool goes_in_line(const Shape& shape, std::size_t bytes, std::string_view forced);

/// For a call with `bytes` in a group. The choice is the same for all sizes with the same highest bit, and for all
/// roots. `forced` is the value of TUTTI_ALGO. `specialised`: kernels for one plan may be used, besides run_plan, which
/// runs any plan.
///
/// The chooser is that of calls on host memory, with the numbers of a GPU on which all peers' memory is equally fast.
/// Small all-reduces go through inboxes instead, without windows and without flags.
GpuChoice choose_on_gpu(const Shape& shape, std::size_t bytes, std::string_view forced, bool specialised,
                        Envelopes& envelopes);

}  // namespace tutti
