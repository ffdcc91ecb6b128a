// All-to-all in which a block's path depends only on the distance it has to travel.
#pragma once

#include <compare>
#include <vector>

#include "plan/schedule.h"

namespace tutti {

/// In `step`, a block travels `distance` of its way around the ranks.
struct Leg {
  int step;
  int distance;
  auto operator<=>(const Leg&) const = default;
};
/// By the distance to travel, from 1.
using Legs = std::vector<std::vector<Leg>>;

/// `legs[d]`: the legs of blocks for the rank d ahead, for d in 1 … n-1, in the order of steps; their distances add up
/// to d. Blocks with several legs wait in scratch, one group for each such d.
Schedule relay(const Shape& shape, const Legs& legs);

/// The number of blocks in its largest message.
int relay_items(int ranks, const Legs& legs);

}  // namespace tutti
