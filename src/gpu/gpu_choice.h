// Chooses the algorithm and the access of a call on device memory.
#pragma once

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

}  // namespace tutti
