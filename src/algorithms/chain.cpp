// From neighbour to neighbour, pipelined in chunks.
#include <algorithm>
#include <utility>

#include "algorithms/algorithm.h"

namespace tutti {
namespace {

/// The positions along the chain that receive something which concerns the shape's ranks: the one in question receives,
/// and so does the one behind it.
std::pair<int, int> receivers(const Shape& shape) {
  if (shape.only == Shape::everybody) return {0, shape.ranks - 1};
  const int own = (shape.only - shape.root + shape.ranks) % shape.ranks;
  return {own, std::min(own + 1, shape.ranks - 1)};
}

Schedule broadcast_or_reduce_along(const Shape& shape, int chunks) {
  const int n = shape.ranks, steps = n - 2 + chunks;
  const bool down = shape.collective == Collective::broadcast;
  const auto [first, last] = receivers(shape);
  const auto rank = [&](int v) { return (v + shape.root) % n; };
  Schedule schedule(shape, chunks);
  for (int chunk = 0; chunk < chunks && down; ++chunk) schedule.copy(shape.root, shape.root, chunk);
  for (int i = 0; i < steps; ++i, schedule.next_step()) {
    // A reduce takes the steps of a broadcast backwards. In step s, chunk s + 1 - v arrives at v.
    const int step = down ? i : steps - 1 - i;
    for (int v = std::max({first, step + 2 - chunks, 1}); v <= std::min(last, step + 1); ++v) {
      if (down)
        schedule.copy(rank(v - 1), rank(v), step + 1 - v);
      else
        schedule.reduce(rank(v), rank(v - 1), step + 1 - v, n - v);
    }
  }
  return schedule;
}

/// In step s, rank r makes chunk s - r of its result, of its input and its neighbour's result.
Schedule scan(const Shape& shape, int chunks) {
  const int steps = shape.ranks - 1 + chunks;
  const auto [first, last] = receivers(shape);
  Schedule schedule(shape, chunks);
  for (int step = 0; step < steps; ++step, schedule.next_step())
    for (Rank rank = std::max(first, step + 1 - chunks); rank <= std::min(last, step); ++rank) {
      const Ref own{Buffer::input, step - rank}, result{Buffer::output, step - rank};
      if (rank == 0) {
        schedule.copy(rank, own, rank, result);
      } else {
        schedule.reduce(rank - 1, result, rank, result, rank - 1);
        schedule.reduce(rank, own, rank, result, rank);
      }
    }
  return schedule;
}

/// What rank r passes on is its result and its input, combined; rank 1's result is rank 0's input. A chunk takes two
/// steps at each rank, so that between combining and passing on there is no wait for the next chunk, and both are one
/// pass. Of two ranks, none combines.
Schedule ex_scan(const Shape& shape, int chunks) {
  const int pace = shape.ranks > 2 ? 2 : 1, steps = pace * (shape.ranks - 3 + chunks) + 1;
  const auto [first, last] = receivers(shape);
  Schedule schedule(shape, chunks);
  for (int step = 0; step < steps; ++step, schedule.next_step())
    for (Rank rank = std::max(first, 1); rank <= std::min(last, step / pace + 1); ++rank) {
      const int at = step - pace * (rank - 1), chunk = at / pace;
      const Ref own{Buffer::input, chunk}, result{Buffer::output, chunk}, passed_on{Buffer::scratch, chunk};
      if (chunk >= chunks) continue;
      if (at % pace == 0) {
        schedule.copy(rank - 1, rank == 1 ? own : passed_on, rank, result);
      } else if (rank < shape.ranks - 1) {
        schedule.reduce(rank, result, rank, passed_on, 0);
        schedule.reduce(rank, own, rank, passed_on, 1);
      }
    }
  return schedule;
}

/// Chain: each rank passes a chunk on to its neighbour as soon as it has received it.
///
///   broadcast, reduce   steps n-2 + chunks   any root   order of sums: along the chain, far end first
///   scan                steps n-1 + chunks   order of sums: rank order, one addition at each rank
///   ex_scan             steps 2(n-3 + chunks) + 1, of two ranks chunks   order of sums: as scan
///
/// Sent per rank bytes; any n ≥ 2. With one chunk it is the plain chain; with many chunks all links are busy at once.
Schedule build(const Shape& shape, int chunks) {
  if (shape.collective == Collective::scan) return scan(shape, chunks);
  return shape.collective == Collective::ex_scan ? ex_scan(shape, chunks) : broadcast_or_reduce_along(shape, chunks);
}

/// A reduce has sums of other ranks in scratch. So has ex_scan what a rank passes on, which it stores to its neighbour.
bool carried_by(Collective collective, Access access) {
  if (collective == Collective::ex_scan) return access == Access::mapped;
  return access != Access::in_line && collective != Collective::reduce;
}

constexpr int chunks[] = {4, 16, 1};

}  // namespace

const Family algorithm::chain{
    .name = "chain",
    .supports = supports_any_of<Collective::broadcast, Collective::reduce, Collective::scan, Collective::ex_scan>,
    .build = build,
    .carried_by = carried_by,
    .items = one_item,
    .parameter = "chunks",
    .values = chunks};

}  // namespace tutti
