// What libhwloc says of the machine at hand, and of machines made up of a line.
#pragma once

#include <string_view>

#include "base/error.h"
#include "topology/graph/topology.h"

namespace tutti::topology {

/// CPU packages and NUMA nodes, also those that this process may not use. Errors: system, where there is no libhwloc or
/// it fails.
Result<Topology> hwloc_cpus();

/// A synthetic machine, "pack:2 numa:1 core:4 pu:2" (hwloc(7)), of at most 65536 objects a level.
/// Errors: invalid_argument, with the place in the text; system, where this was built without libhwloc.
Result<Topology> read_synthetic(std::string_view text);

}  // namespace tutti::topology
