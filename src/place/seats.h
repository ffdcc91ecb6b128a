// From the detector's machine to seats, levels and an order.
#pragma once

#include <sched.h>

#include <span>
#include <vector>

#include "place/job_map.h"
#include "place/locator.h"
#include "topology/graph/topology.h"

namespace tutti {

/// The package, NUMA node and last-level cache that all of `cpus` are part of.
OwnSeat seat_on(const topology::Topology& machine, const cpu_set_t& cpus);

/// Puts the ranks of each host of as many ranks in the order of `ring`. Errors: invalid_argument (the first host has
/// another number of ranks).
Result<void> take_ring(JobMap& map, const std::vector<int>& ring, std::span<const int> hosts);
/// The order of the first host's ranks, counted from 0 within it.
std::vector<int> ring_of_first_host(const JobMap& map, std::span<const int> hosts);

/// See Locator::map. `machine`: of this process; null: unknown.
JobMap map_of(std::span<const OwnSeat> seats, std::span<const int> hosts, const topology::Topology* machine);

}  // namespace tutti
