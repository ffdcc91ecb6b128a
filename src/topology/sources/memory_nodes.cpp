#include "topology/sources/memory_nodes.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "topology/graph/cpus.h"

namespace tutti::topology {

void MemoryNodes::add(const Topology& topology, int node, bool special) {
  nodes_[node] = {.special = special, .cpus = cpus_of_list(topology[node].cpus).size()};
}

bool MemoryNodes::nearer(const Topology& topology, int node, int other) const {
  const auto key = [&](int id) {
    const Node& about = nodes_.at(id);
    return std::tuple(about.special, about.cpus, topology[id].index);
  };
  return key(node) < key(other);
}

void MemoryNodes::leave_out_memory_alone(Topology& topology) const {
  std::vector<int> nodes;
  for (const auto& [id, node] : nodes_) nodes.push_back(id);
  std::ranges::stable_sort(nodes, [&](int a, int b) { return nearer(topology, a, b); });
  std::vector<int> home(cpus_max, -1);  // by CPU
  std::vector<bool> keep(topology.devices.size(), true);
  std::map<int, int> moved;  // of a node that is left out: what its devices are below instead
  for (const int node : nodes) {
    std::set<int> homes;
    for (const int cpu : cpus_of_list(topology[node].cpus)) {
      int& at = home[static_cast<std::size_t>(cpu)];
      if (at < 0) at = node;
      homes.insert(at);
    }
    if (homes.contains(node)) continue;
    keep[static_cast<std::size_t>(node)] = false;
    moved[node] = homes.size() == 1 ? *homes.begin() : topology[node].parent;
  }
  if (moved.empty()) return;
  for (Device& device : topology.devices)
    if (const auto at = moved.find(device.parent); at != moved.end()) device.parent = at->second;
  topology = subset(topology, keep);
}

}  // namespace tutti::topology
