#include "place/cpu_set.h"

#include <vector>

#include "topology/graph/cpus.h"

namespace tutti {

CpuSet cpus_in(const cpu_set_t& set) {
  CpuSet cpus;
  for (std::size_t cpu = 0; cpu < cpus.size(); ++cpu) cpus[cpu] = CPU_ISSET(cpu, &set);
  return cpus;
}

CpuSet cpus_in(std::span<const int> list) {
  CpuSet cpus;
  for (const int cpu : list)
    if (cpu >= 0 && cpu < CPU_SETSIZE) cpus.set(static_cast<std::size_t>(cpu));
  return cpus;
}

cpu_set_t system_set(const CpuSet& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (std::size_t cpu = 0; cpu < cpus.size(); ++cpu)
    if (cpus[cpu]) CPU_SET(cpu, &set);
  return set;
}

int first_cpu(const CpuSet& cpus) {
  for (std::size_t cpu = 0; cpu < cpus.size(); ++cpu)
    if (cpus[cpu]) return static_cast<int>(cpu);
  return -1;
}

std::string text_of(const CpuSet& cpus) {
  std::vector<int> list;
  for (std::size_t cpu = 0; cpu < cpus.size(); ++cpu)
    if (cpus[cpu]) list.push_back(static_cast<int>(cpu));
  return list.empty() ? "none" : topology::list_of_cpus(list);
}

}  // namespace tutti
