// Algorithms see ranks by their numbers. Where other neighbours are nearer, an algorithm builds its schedule for
// *positions*, and the rank at each position does the position's work.
#pragma once

#include "plan/schedule.h"

namespace tutti {

/// Whether ranks take the places that shape.order gives them. Not for a prefix reduction: which inputs a rank gets, and
/// in which order, depends on the ranks' numbers.
inline bool has_positions(const Shape& shape) {
  return !shape.order.empty() && !prefixes(shape.collective);
}

/// `shape` as an algorithm sees it: root, levels and rings by position in `shape.order`, which must name every rank
/// once; groups are numbered in the order of their first positions. A shape that !has_positions() is as it was.
Shape positions_of(const Shape& shape);

/// The schedule for `shape` in which rank shape.order[p] does the work of position p of `by_position`, which was built
/// for positions_of(shape). Blocks that belong to a position, such as an all-gather's output, become those of its rank.
/// Sums are still combined in the order of positions.
Schedule by_rank(const Schedule& by_position, const Shape& shape);

}  // namespace tutti
