// From the detector's machine to seats, levels, an order and rings.
#pragma once

#include <sched.h>

#include <span>
#include <vector>

#include "place/job_map.h"
#include "place/locator.h"
#include "topology/graph/topology.h"
#include "topology/search/placement.h"

namespace tutti {

/// The package, NUMA node and last-level cache that all of `cpus` are part of.
OwnSeat seat_on(const topology::Topology& machine, const cpu_set_t& cpus);

/// Lets the map's order and rings pass the ranks of each host that has as many as `rings` in the order of these, from
/// their first number on; other hosts keep theirs. The order follows the first one; a single one is no ring besides.
/// Errors: invalid_argument (the first host has another number of ranks).
Result<void> take_rings(JobMap& map, const std::vector<std::vector<int>>& rings, std::span<const int> hosts);
/// How the map's rings, else its order, pass the first host's ranks, counted from 0 within it.
std::vector<std::vector<int>> rings_of_first_host(const JobMap& map, std::span<const int> hosts);

/// Where each rank is: as it was told, or on the recorded machine.
struct Places {
  std::vector<topology::Seat> seats;  ///< by rank; Seat::host is the first rank of its host
  std::vector<int> devices;           ///< by rank: its device of the recorded machine; -1: not recorded, or none
};
Places places_of(std::span<const OwnSeat> told, std::span<const int> hosts, const topology::Topology* machine);

/// See Locator::map. `machine`: of this process; null: unknown.
JobMap map_of(std::span<const OwnSeat> seats, std::span<const int> hosts, const topology::Topology* machine);

}  // namespace tutti
