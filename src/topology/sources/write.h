// Writes a machine to a file that other programs can read.
#pragma once

#include <string>

#include "base/error.h"
#include "base/file.h"
#include "topology/graph/topology.h"

namespace tutti::topology {

/// In the format of hwloc 2, for lstopo and hwloc_topology_set_xml: packages, NUMA nodes, CPUs, PCI, and NVLinks as
/// NVLinkBandwidth.
std::string write_hwloc(const Topology& topology);

/// hwloc's XML if the name ends in ".hwloc.xml", else NCCL's, for NCCL_TOPO_FILE. Errors: system, invalid_argument.
Result<void> write_machine(const std::string& path, const Topology& topology, FileKind kind = FileKind::regular);

}  // namespace tutti::topology
