// From the detector's machine to seats, levels and an order.
#pragma once

#include <sched.h>

#include <span>

#include "place/job_map.h"
#include "place/locator.h"
#include "topology/graph/topology.h"

namespace tutti {

/// The package, NUMA node and last-level cache that all of `cpus` are part of.
OwnSeat seat_on(const topology::Topology& machine, const cpu_set_t& cpus);

/// See Locator::map. `machine`: of this process; null: unknown.
JobMap map_of(std::span<const OwnSeat> seats, std::span<const int> hosts, const topology::Topology* machine);

}  // namespace tutti
