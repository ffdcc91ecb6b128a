// What is near a CPU or a device, by ROOT/sys. Lists of CPUs ascend; an empty one: unknown.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tutti::topology {

std::vector<int> cpus_of_core(int cpu, const std::string& root);     ///< the hardware threads of the core of `cpu`
std::vector<int> cpus_of_cache(int cpu, const std::string& root);    ///< that share the last-level cache of `cpu`
std::vector<int> cpus_of_package(int cpu, const std::string& root);  ///< of the package of `cpu`

/// Each NUMA node's number and CPUs, in order of their numbers. A node may have memory alone.
std::vector<std::pair<int, std::vector<int>>> nodes_of_machine(const std::string& root);

struct NearDevice {
  std::vector<int> cpus;
  int node = -1;  ///< number of its NUMA node; -1: unknown
};
/// Of a PCI device: "0000:81:00.0".
NearDevice near_device(const std::string& bus_id, const std::string& root);

}  // namespace tutti::topology
