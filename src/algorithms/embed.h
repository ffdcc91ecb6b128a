// Composition: schedules over some of the ranks become part of a schedule over all ranks.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "plan/schedule.h"

namespace tutti {

/// An inner schedule, the outer ranks that play its ranks, and the meaning of its blocks.
struct Embedding {
  const Schedule* inner;    ///< if it reduces, its shape says what its inputs hold (Shape::inputs)
  std::vector<Rank> ranks;  ///< by inner rank
  /// The outer blocks, of that rank, that an inner block stands for. The source and destination of a transfer must give
  /// equally many blocks, of the same parts in the same order.
  std::function<std::vector<Ref>(Rank inner_rank, Ref inner)> blocks;
};

/// Adds all embeddings to `outer` from the present step on, all at the same time; afterwards `outer` is at its next
/// step. Operands of a reduction keep their order. Copies of a block to itself are left out: an input may be where the
/// output is, since schedules are right in place.
void embed(Schedule& outer, std::span<const Embedding> embeddings);

}  // namespace tutti
