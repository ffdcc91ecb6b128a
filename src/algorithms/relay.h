// All-to-all in which a block's path depends only on the distance it has to travel.
#pragma once

#include <functional>
#include <vector>

#include "plan/schedule.h"

namespace tutti {

/// In `step`, a block travels `distance` of its way around the ranks.
struct Leg {
  int step;
  int distance;
};

/// Fills in the legs of blocks for the rank so far ahead, from 1: in the order of steps, with distances that add up to
/// that.
using LegsOf = std::function<void(int distance, std::vector<Leg>& legs)>;

/// Blocks with several legs wait in scratch, one group for each distance with several.
Schedule relay(const Shape& shape, const LegsOf& legs_of);

/// The number of blocks in its largest message.
int relay_items(int ranks, const LegsOf& legs_of);

/// `build` and `items` of a family, by the legs of its members.
template <LegsOf (*legs_of)(int ranks, int parameter)>
Schedule build_relay(const Shape& shape, int parameter) {
  return relay(shape, legs_of(shape.ranks, parameter));
}
template <LegsOf (*legs_of)(int ranks, int parameter)>
int items_of_relay(const Shape& shape, int parameter) {
  return relay_items(shape.ranks, legs_of(shape.ranks, parameter));
}

}  // namespace tutti
