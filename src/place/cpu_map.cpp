#include "place/cpu_map.h"

#include "topology/sources/cpus_near.h"

namespace tutti {

CpuSet CpuMap::part_of(Part part, int cpu) {
  const std::lock_guard lock(mutex_);
  const auto [known, fresh] = parts_.try_emplace({part, cpu});
  if (!fresh) return known->second;
  switch (part) {
    case Part::core: known->second = cpus_in(topology::cpus_of_core(cpu, root_)); break;
    case Part::cache: known->second = cpus_in(topology::cpus_of_cache(cpu, root_)); break;
    case Part::package: known->second = cpus_in(topology::cpus_of_package(cpu, root_)); break;
    case Part::node:
      read_nodes();
      for (const NumaNode& node : nodes_)
        if (node.cpus.test(static_cast<std::size_t>(cpu))) known->second = node.cpus;
      break;
  }
  return known->second;
}

std::vector<NumaNode> CpuMap::nodes() {
  const std::lock_guard lock(mutex_);
  read_nodes();
  return nodes_;
}

void CpuMap::read_nodes() {
  if (std::exchange(nodes_read_, true)) return;
  for (const auto& [number, cpus] : topology::nodes_of_machine(root_)) nodes_.push_back({number, cpus_in(cpus)});
}

CpuMap::Device CpuMap::device(const std::string& bus_id) {
  const auto near = topology::near_device(bus_id, root_);
  return {.cpus = cpus_in(near.cpus), .node = nodes().size() > 1 ? near.node : -1};
}

}  // namespace tutti
