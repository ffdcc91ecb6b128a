// The machine at hand.
#pragma once

#include <string>

#include "base/error.h"
#include "topology/topology.h"

namespace tutti::topology {

struct Sources {
  std::string root = "";  ///< below which /sys is looked for; not empty: another machine, of which only files say
  bool nvml = true;       ///< ask NVIDIA's driver, where there is one
  std::string nvml_library = "";  ///< instead of libnvidia-ml.so.1
};

/// CPUs of libhwloc (else of /sys), PCI, net and RDMA devices of /sys, NVLinks of NVML. What a source cannot say is a
/// note, and the topology is what the others say: at least one NUMA node.
Result<Topology> detect(const Sources& sources);

/// PCI functions, NICs and, where it has none, NUMA nodes of ROOT/sys are added.
void add_sysfs(Topology& topology, const std::string& root);

/// Numbers, compute capabilities, NVLinks, C2C, fabric and P2P states of NVIDIA's GPUs are added.
void add_nvml(Topology& topology, const std::string& library);

}  // namespace tutti::topology
