// The links of a GPU's ranks to all ranks of their communicator, and the areas that these lead to.
#pragma once

#include <span>
#include <vector>

#include "cuda/job.h"
#include "cuda/resources.h"
#include "kernels/area.h"

namespace tutti::cuda {

struct LocalLinks {
  device::Area area;
  device::Area message_area{.channels = 0};  ///< for sends and receives; no slots: there are none
  std::vector<device::Link*> links;          ///< by local rank
  device::Link* message_links = nullptr;     ///< of the only local rank
  DeviceMemory memory = {};                  ///< all links, and the areas unless EngineShape has them

  /// Has written them by `stream` when it returns. The context must be current. Errors: cuda.
  static Result<LocalLinks> make(const SharedGpu& gpu, const EngineShape& shape, int channels, Stream stream);
};

}  // namespace tutti::cuda
