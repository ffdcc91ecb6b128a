#include "topology/sources/cpus_near.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/file.h"
#include "topology/graph/cpus.h"
#include "topology/sources/sysfs_files.h"

namespace tutti::topology {
namespace {

/// `older`: the same file's name before Linux 5.3.
std::vector<int> list_of_topology(int cpu, const std::string& root, const char* name, const char* older) {
  const std::string folder = fmt::format("{}/sys/devices/system/cpu/cpu{}/topology/", root, cpu);
  const std::string list = line_of(folder + name);
  return cpus_of_list(list.empty() ? line_of(folder + older) : list);
}

}  // namespace

std::vector<int> cpus_of_core(int cpu, const std::string& root) {
  return list_of_topology(cpu, root, "core_cpus_list", "thread_siblings_list");
}

std::vector<int> cpus_of_package(int cpu, const std::string& root) {
  return list_of_topology(cpu, root, "package_cpus_list", "core_siblings_list");
}

std::vector<int> cpus_of_cache(int cpu, const std::string& root) {
  const std::string folder = fmt::format("{}/sys/devices/system/cpu/cpu{}/cache", root, cpu);
  std::string shared;
  int last = 0;
  for (const std::string& entry : names_in(folder)) {
    const std::string cache = folder + "/" + entry;
    const int level = number_of(cache + "/level", 0);
    if (level <= last || line_of(cache + "/type") == "Instruction") continue;
    last = level;
    shared = line_of(cache + "/shared_cpu_list");
  }
  return cpus_of_list(shared);
}

std::vector<std::pair<int, std::vector<int>>> nodes_of_machine(const std::string& root) {
  const std::string folder = root + "/sys/devices/system/node";
  std::vector<std::pair<int, std::vector<int>>> nodes;
  for (const int number : node_numbers(folder))
    nodes.emplace_back(number, cpus_of_list(line_of(fmt::format("{}/node{}/cpulist", folder, number))));
  std::ranges::sort(nodes);
  return nodes;
}

NearDevice near_device(const std::string& bus_id, const std::string& root) {
  const std::string folder = root + "/sys/bus/pci/devices/" + bus_id;
  return {.cpus = cpus_of_list(line_of(folder + "/local_cpulist")), .node = number_of(folder + "/numa_node", -1)};
}

}  // namespace tutti::topology
