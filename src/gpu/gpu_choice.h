// Chooses the algorithm and the access of a call on device memory.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "choice/choice.h"

namespace tutti {

struct GpuChoice {
  const Algorithm* algorithm = nullptr;
  Access access = Access::mapped;
};

/// How the kernels of a call wait for those of other ranks.
enum class Waiting {
  in_launch,  ///< all ranks' are one launch
  by_flags,   ///< all run at the same time, in several launches
  by_host,    ///< not at all: the host lets them go when their time has come
};

/// For a call with `bytes` in a group. The choice is the same for all sizes with the same highest bit, and for all
/// roots. `forced` is the value of TUTTI_ALGO, by access. `specialised`: kernels for one plan may be used, besides
/// run_plan, which runs any plan.
///
/// The chooser is that of calls on host memory, with the numbers of a GPU on which all peers' memory is equally fast.
/// Kernels that wait by flags use slots, others windows. Small all-reduces go through inboxes instead.
GpuChoice choose_on_gpu(const Shape& shape, std::size_t bytes, const std::function<std::string(Access)>& forced,
                        bool specialised, Waiting waiting, Envelopes& envelopes);

}  // namespace tutti
