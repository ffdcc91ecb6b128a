// Machines from libhwloc: this machine, and synthetic ones that a line describes.
#pragma once

#include <string_view>

#include "base/error.h"
#include "topology/graph/topology.h"

namespace tutti::topology {

/// CPU packages and NUMA nodes, including those that this process may not use. Errors: system, if there is no libhwloc
/// or it fails.
Result<Topology> hwloc_cpus();

/// A synthetic machine, "pack:2 numa:1 core:4 pu:2" (hwloc(7)), of at most 65536 objects per level. Errors:
/// invalid_argument (with the position in the text); system (there is no libhwloc).
Result<Topology> read_synthetic(std::string_view text);

}  // namespace tutti::topology
