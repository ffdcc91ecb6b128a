// What looks wrong about a machine, one line each.
#pragma once

#include <string>
#include <vector>

#include "topology/graph/topology.h"

namespace tutti::topology {

/// NVLink rows that differ by direction or GPU, GPUs outside the fabric, links that run below their maximum, bridges
/// slower than the devices below them, NUMA nodes with the same CPUs, peers by NVLink or a PCI switch without P2P, GPUs
/// that ACS or the IOMMU isolates from each other, and the notes of the sources.
std::vector<std::string> warnings(const Topology& topology);

}  // namespace tutti::topology
