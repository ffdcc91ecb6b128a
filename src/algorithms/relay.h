// All-to-all where a block's way depends only on how far it has to go.
#pragma once

#include <vector>

#include "plan/schedule.h"

namespace tutti {

/// A block that is to go some way around the ranks goes `distance` of it in `step`.
struct Leg {
  int step;
  int distance;
};

/// `legs[d]`: those of blocks meant for the rank d ahead, for d in 1 … n-1: in the order of steps, of sum d. Blocks
/// that take several legs wait in scratch, one group for each such d.
Schedule relay(const Shape& shape, const std::vector<std::vector<Leg>>& legs);

}  // namespace tutti
