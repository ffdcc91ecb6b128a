#include "topology/sources/detect.h"

#include <sys/stat.h>
#include <unistd.h>

#include "topology/sources/fabric.h"
#include "topology/sources/hwloc_source.h"
#include "topology/sources/read.h"
#include "topology/sources/write.h"

namespace tutti::topology {
namespace {

Topology live(const Sources& sources) {
  Topology topology{.origin = sources.root.empty() ? "live" : sources.root};
  if (sources.root.empty()) {
    auto cpus = hwloc_cpus();
    if (cpus)
      topology.devices = std::move(cpus->devices);
    else
      topology.notes.push_back(cpus.error().what + "; CPUs are those of /sys");
  }
  add_sysfs(topology, sources.root);
  if (topology.of_kind(DeviceKind::numa).empty()) {
    topology.add({.kind = DeviceKind::numa, .name = "NUMA0", .index = 0, .numa = 0, .source = "assumed"});
    if (::access((sources.root + "/sys").c_str(), F_OK) == 0)
      topology.notes.push_back("no source lists the CPUs; they are taken as one NUMA node");
  }
  add_limits(topology, sources.root);
  normalise(topology);
  if (sources.nvml)
    add_nvml(topology);
  else if (has_nvidia(topology))
    topology.notes.push_back(sources.root.empty() ? "NVML was not asked: NVLinks are not known"
                                                  : "NVML cannot be asked about a copy of /sys: NVLinks are not known");
  if (has_amd(topology)) {
    topology.nvlink_known = false;
    topology.notes.push_back("/sys does not say which xGMI links there are: they are not known");
  }
  normalise(topology);
  return topology;
}

}  // namespace

Result<Topology> detect(const Sources& sources) {
  Topology topology;
  struct stat about = {};
  if (sources.file.empty()) {
    topology = live(sources);
  } else if (::stat((sources.file + "/sys").c_str(), &about) == 0 && S_ISDIR(about.st_mode)) {
    topology = live({.root = sources.file, .nvml = false});
  } else {
    auto recorded = read_machine(sources.file, sources.kind);
    if (!recorded) return recorded;
    topology = *std::move(recorded);
  }
  if (!sources.dump.empty()) TUTTI_TRY(write_machine(sources.dump, topology));
  return topology;
}

}  // namespace tutti::topology
