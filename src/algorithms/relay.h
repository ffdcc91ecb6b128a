// All-to-all in which a block's path depends only on the distance it has to travel.
#pragma once

#include <vector>

#include "plan/schedule.h"

namespace tutti {

/// In `step`, a block travels `distance` of its way around the ranks.
struct Leg {
  int step;
  int distance;
};

/// `legs[d]`: the legs of blocks for the rank d ahead, for d in 1 … n-1, in the order of steps; their distances add up
/// to d. Blocks with several legs wait in scratch, one group for each such d.
Schedule relay(const Shape& shape, const std::vector<std::vector<Leg>>& legs);

}  // namespace tutti
