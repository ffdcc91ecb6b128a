// How fast the links of a recorded machine are, as numbers for a prediction.
#pragma once

#include <vector>

#include "algorithms/machine.h"
#include "topology/graph/topology.h"

namespace tutti::tool {

/// GB/s between the GPUs that the ranks of one host have, along their paths, as Conditions::pair_gbps; empty without
/// GPUs, with several ranks to a GPU, or where all pairs are alike.
std::vector<double> pair_rates_of(const topology::Topology& machine, int ranks);

/// Of ranks that are GPUs: peers' memory at the rate of all rings of the search together, other hosts at that of a NIC
/// for each rank. Without GPUs: the built-in numbers.
Machine rates_of(const topology::Topology& machine, int ranks_per_host);

}  // namespace tutti::tool
