// From neighbour to neighbour, pipelined in chunks.
#include <algorithm>
#include <utility>

#include "algorithms/algorithm.h"

namespace tutti {
namespace {

/// Chain: each rank passes a chunk on to its neighbour as soon as it has received it.
///
///   steps n-2 + chunks   sent per rank bytes   any n ≥ 2, any root   order of sums: along the chain, far end first
///
/// With one chunk it is the plain chain; with many chunks all links are busy at once.
Schedule build(const Shape& shape, int chunks) {
  const int n = shape.ranks, steps = n - 2 + chunks;
  const bool down = shape.collective == Collective::broadcast;
  const int own = shape.only == Shape::everybody ? Shape::everybody : (shape.only - shape.root + n) % n;
  const auto rank = [&](int v) { return (v + shape.root) % n; };
  Schedule schedule(shape, chunks);
  for (int chunk = 0; chunk < chunks && down; ++chunk) schedule.copy(shape.root, shape.root, chunk);
  for (int i = 0; i < steps; ++i, schedule.next_step()) {
    // A reduce takes the steps of a broadcast backwards. In step s, chunk s + 1 - v arrives at v.
    const int step = down ? i : steps - 1 - i;
    const auto [first, last] = own == Shape::everybody ? std::pair(1, n - 1) : std::pair(own, own + 1);
    for (int v = std::max({first, step + 2 - chunks, 1}); v <= std::min({last, step + 1, n - 1}); ++v) {
      if (down)
        schedule.copy(rank(v - 1), rank(v), step + 1 - v);
      else
        schedule.reduce(rank(v), rank(v - 1), step + 1 - v);
    }
  }
  return schedule;
}

constexpr int chunks[] = {4, 16, 1};

}  // namespace

const Family algorithm::chain{.name = "chain",
                              .supports = broadcast_or_reduce,
                              .build = build,
                              .carried_by = broadcast_carried_except_inline,
                              .items = one_item,
                              .parameter = "chunks",
                              .values = chunks};

}  // namespace tutti
