// How fast the links between the ranks of one host are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topology/graph/topology.h"

namespace tutti {

/// MB/s from each rank to each other along the path between their devices, by from · ranks + to; 0: unknown, or the
/// same device. `devices`: by rank, ids; -1: none. Empty where they tell nothing: all pairs are alike, some rank has no
/// device, or there are more ranks than pairs are of use for.
std::vector<std::uint32_t> pair_rates(const topology::Topology& machine, std::span<const int> devices);

}  // namespace tutti
