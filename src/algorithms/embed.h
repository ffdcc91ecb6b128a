// Composition: schedules among some of the ranks, as part of a schedule among all.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "plan/schedule.h"

namespace tutti {

/// A schedule, who plays its ranks, and what its blocks are.
struct Embedding {
  const Schedule* inner;
  std::vector<Rank> ranks;  ///< by inner rank
  /// The outer blocks, of that rank, that an inner block stands for: as many for the source of a transfer as for its
  /// destination, and of the same parts in the same order.
  std::function<std::vector<Ref>(Rank inner_rank, Ref inner)> blocks;
};

/// Adds all of them to `outer`, all at the same time, from a new step on; then `outer` is at its next step. Operands of
/// a reduction keep their order. Copies of a block to itself are left out: an input may be where the output is, since
/// schedules are right in place.
void embed(Schedule& outer, std::span<const Embedding> embeddings);

}  // namespace tutti
