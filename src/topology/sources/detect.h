// Detects this machine.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "topology/graph/topology.h"

namespace tutti::topology {

struct Sources {
  std::string file = "";              ///< a recorded machine to use instead (read_machine), or a folder like `root`
  FileKind kind = FileKind::regular;  ///< of `file`
  std::string dump = "";              ///< where to write the result (write_machine)
  /// folder that contains /sys and /proc; not empty: another machine, known only from these files
  std::string root = "";
  bool nvml = true;  ///< query NVIDIA's driver, if present
};

/// CPUs from libhwloc (else from /sys), PCI, net and RDMA devices from /sys, NVLinks from NVML. A source that fails
/// leaves a note, and the topology is that of the other sources: at least one NUMA node. Errors: those of read_machine
/// and write_machine.
Result<Topology> detect(const Sources& sources);

/// Adds the PCI functions, NICs and, if there are none yet, packages and NUMA nodes of ROOT/sys.
void add_sysfs(Topology& topology, const std::string& root);

/// Adds numbers, compute capabilities, NVLinks, C2C, fabric and P2P states of NVIDIA's GPUs; removes GPUs that the
/// driver does not list.
void add_nvml(Topology& topology, const std::string& library = "libnvidia-ml.so.1");

/// Adds the CPUs that the process of ROOT/proc/self may use: its affinity, and a note if the affinity or a control
/// group limits them.
void add_limits(Topology& topology, const std::string& root);

}  // namespace tutti::topology
