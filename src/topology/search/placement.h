// What algorithms and processes need to know of a machine, as plain numbers: orders of ranks, levels, CPUs.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "topology/graph/topology.h"

namespace tutti::topology {

/// The location of a rank, in numbers that mean the same for all ranks of its host; -1: unknown.
struct RankLocation {
  int host = 0;
  int package = -1;
  int numa = -1;
  int cache = -1;       ///< the last-level cache
  int nvlink = -1;      ///< GPUs that NVLink or xGMI connects have the same number; -1: its device has no such links
  int pci_switch = -1;  ///< the outermost switch above its device; below none: a number of the device itself
  std::array<int, 3> groups = {-1, -1, -1};  ///< of hosts, outermost first: pods or racks
};

/// Of a rank at a device (a GPU, NIC or NUMA node), by id; -1: nothing is known but the host.
RankLocation location_at(int host, const Topology& topology, int device);

/// The name of the NIC that is nearest to a device (a GPU or NUMA node), of several the fastest, by id; empty: there is
/// none, or -1.
std::string nearest_nic(const Topology& topology, int device);

/// The highest bridge above a device; -1: it is directly below a root.
int outermost_switch(const Topology& topology, int device);

/// Ranks that are alike in the first `parts` of their locations, from groups of hosts on: groups numbered from 0 in
/// order of their first ranks.
std::vector<int> grouped(std::span<const RankLocation> locations, std::size_t parts);
inline constexpr std::size_t location_parts = 9;

/// Rank → group of ranks that share a group of hosts, then a host, a package, a NUMA node, a cache, NVLinks, a PCI
/// switch: nested, groups numbered from 0 in order of their first ranks, as in Shape::levels. A level with a single
/// group, with a group per rank, or with the groups of the previous level is left out.
std::vector<std::vector<int>> levels_of(std::span<const RankLocation> locations);

struct RankChannels {
  std::vector<std::vector<int>> orders;  ///< ranks, from each to the next and back to the first
  double gbps_each = 0;                  ///< GB/s of one ring, in each direction; 0: fewer than two ranks
};

/// Rings through all ranks of one host; `devices[rank]` is an id. Ranks on one device are adjacent. If every rank has a
/// GPU: the rings of `search`; else one ring in the order of the tree.
RankChannels channels_of(const Topology& topology, std::span<const int> devices);

/// CPUs of the NUMA node next to `device` that this process may use; all CPUs that it may use if there is no such node.
std::string cpus_near(const Topology& topology, int device);

}  // namespace tutti::topology
