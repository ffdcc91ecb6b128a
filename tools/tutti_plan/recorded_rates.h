// How fast the links of a recorded machine are, as numbers for a prediction.
#pragma once

#include "choice/machine.h"
#include "topology/graph/topology.h"

namespace tutti::tool {

/// Of ranks that are GPUs: peers' memory at the rate of all rings of the search together, other hosts at that of a NIC
/// for each rank. Without GPUs: the built-in numbers.
Machine rates_of(const topology::Topology& machine, int ranks_per_host);

}  // namespace tutti::tool
