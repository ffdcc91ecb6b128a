// Lower bounds on the time of any algorithm.
#pragma once

#include <span>

#include "analysis/simulator/topology.h"
#include "plan/types.h"

namespace tutti::simulator {

/// The time that the narrowest of `cuts` needs for the bytes that must leave or enter a group of ranks, and nothing
/// else: no latency, no sums. `bytes`: of the largest buffer of a rank. Switches that sum can be faster.
double least_time_ns(Collective collective, int ranks, double bytes, std::span<const Cut> cuts);

/// Bus bandwidth is this factor times bytes over time, as in docs/performance.md.
double bus_factor(Collective collective, int ranks);

}  // namespace tutti::simulator
