// The machine as hwloc exports it, in the formats of hwloc 1 and 2.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "topology/graph/topology.h"

namespace tutti::topology {

/// GPUs are PCI functions of NVIDIA or AMD by class, or such with an NVML, CUDA or RSMI device: each once, however many
/// devices the system makes of it. Links are those of NVLinkBandwidth and XGMIBandwidth; other distances are left
/// alone. Errors: invalid_argument with the line; the format of hwloc 3 is one.
Result<Topology> read_hwloc(std::string_view text);

}  // namespace tutti::topology
