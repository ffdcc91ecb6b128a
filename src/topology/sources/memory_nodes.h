// Tells NUMA nodes with CPUs of their own from memory that is only near to CPUs: HBM, CXL, a GPU's.
#pragma once

#include <cstddef>
#include <map>

#include "topology/graph/topology.h"

namespace tutti::topology {

/// The NUMA nodes of hwloc, which gives memory without CPUs those that it is near to.
class MemoryNodes {
 public:
  /// `special`: the source says that it is another kind of memory than a CPU's own.
  void add(const Topology& topology, int node, bool special);

  /// Whether the first of two nodes with CPUs in common is more likely these CPUs' own.
  bool nearer(const Topology& topology, int node, int other) const;

  /// Each CPU is in the nearest of the nodes that have it. A node in which none is, is memory alone: it is left out, as
  /// no rank runs there, and its devices are where its CPUs are. Changes ids.
  void leave_out_memory_alone(Topology& topology) const;

 private:
  struct Node {
    bool special = false;
    std::size_t cpus = 0;
  };
  std::map<int, Node> nodes_;  // by id
};

}  // namespace tutti::topology
