// The machine at hand.
#pragma once

#include <string>

#include "base/error.h"
#include "topology/graph/topology.h"

namespace tutti {
class Config;
}

namespace tutti::topology {

struct Sources {
  std::string file = "";  ///< a recorded machine to take instead (read_machine), or a folder like `root`
  std::string dump = "";  ///< where to write what was found (write_machine)
  std::string root =
      "";            ///< below which /sys and /proc are looked for; not empty: another machine, of which only files say
  bool nvml = true;  ///< ask NVIDIA's driver, where there is one
  std::string nvml_library = "";  ///< instead of libnvidia-ml.so.1
};

/// TUTTI_TOPO_FILE and TUTTI_TOPO_DUMP_FILE.
Sources sources_of(const Config& config);

/// CPUs of libhwloc (else of /sys), PCI, net and RDMA devices of /sys, NVLinks of NVML. What a source cannot say is a
/// note, and the topology is what the others say: at least one NUMA node. Errors: those of read_machine and
/// write_machine.
Result<Topology> detect(const Sources& sources);

/// PCI functions, NICs and, where it has none, packages and NUMA nodes of ROOT/sys are added.
void add_sysfs(Topology& topology, const std::string& root);

/// Numbers, compute capabilities, NVLinks, C2C, fabric and P2P states of NVIDIA's GPUs are added; what the driver does
/// not list is left out.
void add_nvml(Topology& topology, const std::string& library);

/// CPUs that the process of ROOT/proc/self may use: its affinity, and a note where it or a control group limits them.
void add_limits(Topology& topology, const std::string& root);

}  // namespace tutti::topology
