// What about a machine looks wrong, each in a line for a person.
#pragma once

#include <string>
#include <vector>

#include "topology/graph/topology.h"

namespace tutti::topology {

/// NVLink rows that differ by direction or GPU, GPUs off the fabric, links trained below their maximum, bridges slower
/// than what is below them, NUMA nodes with the same CPUs, peers by NVLink or a PCI switch without P2P, GPUs that ACS
/// or the IOMMU keeps apart, and what the sources noted.
std::vector<std::string> warnings(const Topology& topology);

}  // namespace tutti::topology
