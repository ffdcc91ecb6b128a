// A machine as a file that others can read.
#pragma once

#include <string>

#include "base/error.h"
#include "topology/graph/topology.h"

namespace tutti::topology {

/// In the format of hwloc 2, so that lstopo and hwloc_topology_set_xml take it: packages, NUMA nodes, CPUs, PCI, and
/// NVLinks as NVLinkBandwidth.
std::string write_hwloc(const Topology& topology);

/// XML of hwloc where the name ends in ".hwloc.xml", else of NCCL, for NCCL_TOPO_FILE. Errors: system.
Result<void> write_machine(const std::string& path, const Topology& topology);

}  // namespace tutti::topology
