// Which CPUs a thread of the library runs on: near its rank, never on a core that a rank is bound to.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "place/cpu_set.h"

namespace tutti {

/// Parts of a machine, from small to large. core: the hardware threads of one core. cache: what shares the last-level
/// cache.
enum class Part { core, cache, node, package };

/// The CPUs of the part that a CPU is in; none: unknown.
using PartOf = std::function<CpuSet(Part part, int cpu)>;

/// The core that a rank is bound to: all CPUs of `mask` belong to it, and `allowed` has more than these. None: the rank
/// is not bound, or to more than a core.
CpuSet bound_core(const CpuSet& mask, const CpuSet& allowed, const PartOf& part_of);

struct ThreadNeeds {
  CpuSet home;                ///< where the thread's rank may run
  CpuSet allowed;             ///< where this process may run at all, whatever its threads are bound to
  std::vector<CpuSet> ranks;  ///< where each rank of this machine may run
  CpuSet device;              ///< the CPUs near the thread's GPU; none: it has no GPU, or they are unknown
  bool spins = false;         ///< while it waits: such threads of several ranks are not to share a CPU
};

struct ThreadPlacement {
  enum class Kind {
    left_alone,  ///< its rank is not bound
    crowded,     ///< each core has a rank bound to it
    placed,
  };
  Kind kind = Kind::left_alone;
  CpuSet cpus;                  ///< of Kind::placed
  std::string_view where = {};  ///< of Kind::placed, for the log: "of the same cache"
};

/// The nearest part around `home` that has a free CPU: one on whose core no rank is bound. For a thread that spins it
/// must have as many as it has cores with ranks bound to them, since each may have such a thread; if there are too few
/// everywhere, all free CPUs. CPUs that are also near `device` come first.
ThreadPlacement cpus_for_thread(const ThreadNeeds& needs, const PartOf& part_of);

/// A NUMA node and its CPUs; it may have none.
struct NumaNode {
  int number = 0;
  CpuSet cpus;
};

/// The node for the memory of a rank that may run on `mask`; -1: none is better than another.
int memory_node(const CpuSet& mask, const std::vector<NumaNode>& nodes);

}  // namespace tutti
