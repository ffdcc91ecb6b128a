// From the detector's machine to locations, levels, an order and rings.
#pragma once

#include <sched.h>

#include <span>
#include <vector>

#include "place/job_map.h"
#include "place/locator.h"
#include "topology/graph/topology.h"
#include "topology/search/placement.h"

namespace tutti {

/// Where the GPU at this PCI address is; if the machine has no such GPU, the package, NUMA node and last-level cache
/// that all of `cpus` are part of.
ReportedLocation location_at_gpu(const topology::Topology& machine, const cpu_set_t& cpus, const std::string& bus_id);

/// The machine of each host, as far as it is known.
class HostMachines {
 public:
  /// Every host is like this one; null: nothing is known.
  HostMachines(const topology::Topology* alike) : alike_(alike) {}
  /// By rank, which must outlive this.
  HostMachines(std::span<const SharedMachine> by_rank) : by_rank_(by_rank) {}
  HostMachines(const std::vector<SharedMachine>& by_rank) : by_rank_(by_rank) {}

  /// Of this rank's host; null: unknown.
  const topology::Topology* of(Rank rank) const {
    const auto at = static_cast<std::size_t>(rank);
    return at < by_rank_.size() ? by_rank_[at].get() : alike_;
  }

 private:
  const topology::Topology* alike_ = nullptr;
  std::span<const SharedMachine> by_rank_;
};

/// Lets the map's order and rings pass the ranks of each host that has as many as `rings` in the order of these, from
/// their first number on; other hosts keep theirs. The order follows the first one; a single one is no ring besides.
/// Errors: invalid_argument (the first host has another number of ranks).
Result<void> take_rings(JobMap& map, const std::vector<std::vector<int>>& rings, std::span<const int> hosts);
/// How the map's rings, else its order, pass the first host's ranks, counted from 0 within it.
std::vector<std::vector<int>> rings_of_first_host(const JobMap& map, std::span<const int> hosts);

/// Where each rank is: at its device of its host's machine, else as it was told.
struct JobLocations {
  std::vector<topology::RankLocation> locations;  ///< by rank; RankLocation::host is the first rank of its host
  std::vector<int> devices;  ///< by rank: its GPU, or its NUMA node of a recorded machine; -1: none
};
/// On a recorded machine the ranks of a host take its GPUs in turn of their numbers, or its NUMA nodes if there are
/// none.
JobLocations job_locations(std::span<const ReportedLocation> told, std::span<const int> hosts,
                           const HostMachines& machines);

/// Levels, and an order: where each rank of a host has a device, rings follow the search for the machine's links.
JobMap map_of(std::span<const ReportedLocation> locations, std::span<const int> hosts, const HostMachines& machines);

}  // namespace tutti
