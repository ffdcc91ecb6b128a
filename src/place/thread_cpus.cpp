#include "place/thread_cpus.h"

#include <algorithm>
#include <array>

namespace tutti {
namespace {

constexpr std::size_t core_threads_max = 8;  // of POWER; spares the question which core a large mask begins in

struct Choice {
  CpuSet cpus;
  std::string_view where;
};

/// The parts of this kind that `home` touches.
CpuSet around(const CpuSet& home, Part part, const PartOf& part_of) {
  CpuSet all = home;
  for (CpuSet left = home; left.any();) {
    const int cpu = first_cpu(left);
    const CpuSet near = part_of(part, cpu);
    all |= near;
    left &= ~near;
    left.reset(static_cast<std::size_t>(cpu));
  }
  return all;
}

/// From near to far.
std::vector<Choice> choices_of(const ThreadNeeds& needs, const PartOf& part_of) {
  const std::array plain = {Choice{needs.home, "of its rank"},
                            Choice{around(needs.home, Part::cache, part_of), "of the same cache"},
                            Choice{around(needs.home, Part::node, part_of), "of the same NUMA node"},
                            Choice{around(needs.home, Part::package, part_of), "of the same package"}};
  std::vector<Choice> choices;
  if (needs.device.any()) {
    for (const Choice& choice : plain) choices.push_back({choice.cpus & needs.device, choice.where});
    choices.push_back({needs.device, "near its GPU"});
  }
  choices.insert(choices.end(), plain.begin(), plain.end());
  return choices;
}

/// The cores that ranks are bound to, each once: communicators have ranks in common, and ranks share cores.
std::vector<CpuSet> bound_cores(const ThreadNeeds& needs, const PartOf& part_of) {
  std::vector<CpuSet> cores;
  CpuSet known;
  const auto add = [&](const CpuSet& mask) {
    if (within(mask, known)) return;
    const CpuSet core = bound_core(mask, needs.allowed, part_of);
    if (core.none()) return;
    cores.push_back(core);
    known |= core;
  };
  add(needs.home);
  std::ranges::for_each(needs.ranks, add);
  return cores;
}

}  // namespace

CpuSet bound_core(const CpuSet& mask, const CpuSet& allowed, const PartOf& part_of) {
  if (mask.none() || mask.count() > core_threads_max || within(allowed, mask)) return {};
  const int cpu = first_cpu(mask);
  CpuSet core = part_of(Part::core, cpu);
  core.set(static_cast<std::size_t>(cpu));
  return within(mask, core) ? core : CpuSet();
}

ThreadPlacement cpus_for_thread(const ThreadNeeds& needs, const PartOf& part_of) {
  if (needs.home.none() || within(needs.allowed, needs.home)) return {};
  const std::vector<CpuSet> cores = bound_cores(needs, part_of);
  CpuSet free = needs.allowed;
  for (const CpuSet& core : cores) free &= ~core;
  if (free.none()) return {.kind = ThreadPlacement::Kind::crowded};
  for (const Choice& choice : choices_of(needs, part_of)) {
    const CpuSet found = choice.cpus & free;
    const auto in_choice = [&](const CpuSet& core) { return (core & choice.cpus).any(); };
    const auto bound = needs.spins ? static_cast<std::size_t>(std::ranges::count_if(cores, in_choice)) : 1;
    if (found.count() >= std::max<std::size_t>(1, bound))
      return {.kind = ThreadPlacement::Kind::placed, .cpus = found, .where = choice.where};
  }
  return {.kind = ThreadPlacement::Kind::placed, .cpus = free, .where = "of the machine"};
}

int memory_node(const CpuSet& mask, const std::vector<NumaNode>& nodes) {
  if (mask.none() || nodes.size() < 2) return -1;
  const auto holds = [&](const NumaNode& node) { return within(mask, node.cpus); };
  const auto found = std::ranges::find_if(nodes, holds);
  return found == nodes.end() ? -1 : found->number;
}

}  // namespace tutti
