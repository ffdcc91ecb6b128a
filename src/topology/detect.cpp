#include "topology/detect.h"

#include "topology/hwloc_source.h"
#include "topology/pci.h"

namespace tutti::topology {

Result<Topology> detect(const Sources& sources) {
  Topology topology{.nvlink_known = false};
  if (sources.root.empty()) {
    auto cpus = hwloc_cpus();
    if (cpus)
      topology = *std::move(cpus);
    else
      topology.notes.push_back(cpus.error().what + "; CPUs are those of /sys");
  }
  topology.nvlink_known = false;
  topology.origin = sources.root.empty() ? "live" : sources.root;
  add_sysfs(topology, sources.root);
  if (topology.of_kind(DeviceKind::numa).empty()) {
    topology.add({.kind = DeviceKind::numa, .name = "NUMA0", .index = 0, .numa = 0, .source = "assumed"});
    topology.notes.push_back("nothing says what CPUs there are; taken as one NUMA node");
  }
  settle(topology);
  if (sources.nvml) add_nvml(topology, sources.nvml_library);
  settle(topology);
  return topology;
}

}  // namespace tutti::topology
