// What algorithms and processes get of a machine, as plain numbers: orders of ranks, levels, CPUs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topology/graph/topology.h"

namespace tutti::topology {

/// Where a rank is: on which host, and on what device of it (a GPU, NIC or NUMA node).
struct Seat {
  int host = 0;
  const Topology* topology = nullptr;
  int device = -1;  ///< its id there; -1: not known
};

/// Rank → group of ranks that share a host, then a NUMA node, then a PCI switch (the outermost one): nested, groups
/// numbered from 0 in order of their first ranks, as Shape::levels has them. A level that has one group alone, a group
/// for each rank, or the groups of the level before, is left out.
std::vector<std::vector<int>> levels_of(std::span<const Seat> seats);

struct RankChannels {
  std::vector<std::vector<int>> orders;  ///< ranks, from each to the next and back
  double gbps_each = 0;                  ///< GB/s of one of them, each way; 0: fewer than two ranks
};

/// Rings through all ranks of one host; `devices[rank]` is an id. Ranks on one device follow one another. With a GPU
/// for each: those of `search`; else one ring as the devices lie in the tree.
RankChannels channels_of(const Topology& topology, std::span<const int> devices);

/// CPUs of the NUMA node next to `device` that this process may use; all that it may use where there is none.
std::string cpus_near(const Topology& topology, int device);

/// The same for each rank of a host, shared out among those that are near to the same: no two ranks have one CPU in
/// common, unless there are fewer CPUs than ranks.
std::vector<std::string> shared_cpus(const Topology& topology, std::span<const int> devices);

}  // namespace tutti::topology
