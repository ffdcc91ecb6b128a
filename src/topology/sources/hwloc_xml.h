// Reads machines exported by hwloc, in the formats of hwloc 1, 2 and 3.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "topology/graph/topology.h"

namespace tutti::topology {

/// GPUs are PCI functions of NVIDIA or AMD by class, or functions with an NVML, CUDA or RSMI device: each once, however
/// many devices the system has for it. Links are those of NVLinkBandwidth and XGMIBandwidth; other distances are
/// ignored. Errors: invalid_argument with the line; also for later formats.
Result<Topology> read_hwloc(std::string_view text);

}  // namespace tutti::topology
