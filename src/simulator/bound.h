// What no algorithm of ranks can beat.
#pragma once

#include <span>

#include "plan/types.h"
#include "simulator/topology.h"

namespace tutti::simulator {

/// The time that the narrowest of `cuts` needs for the bytes that must come out of a group of ranks, or into it, and
/// nothing else: no latency, no sums. `bytes`: of the largest buffer of a rank. Switches that add up can be faster.
double least_time_ns(Collective collective, int ranks, double bytes, std::span<const Cut> cuts);

/// Bus bandwidth is this times bytes over time, as docs/performance.md has it.
double bus_factor(Collective collective, int ranks);

}  // namespace tutti::simulator
