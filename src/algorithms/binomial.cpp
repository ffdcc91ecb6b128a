// A tree whose root's children have subtrees of 1, 2, 4, … ranks.
#include <bit>

#include "algorithms/algorithm.h"

namespace tutti {
namespace {

/// The rank `v` after the root, cyclically.
Rank rank_of(const Shape& shape, int v) {
  return (v + shape.root) % shape.ranks;
}

Schedule broadcast(const Shape& shape) {
  const int n = shape.ranks;
  Schedule schedule(shape, /*parts=*/1);
  schedule.copy(shape.root, shape.root, 0);
  for (int have = 1; have < n; have *= 2, schedule.next_step())
    for (int v = 0; v < have && v + have < n; ++v) schedule.copy(rank_of(shape, v), rank_of(shape, v + have), 0);
  return schedule;
}

Schedule reduce(const Shape& shape) {
  const int n = shape.ranks;
  Schedule schedule(shape, /*parts=*/1);
  for (int left = static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))) / 2; left >= 1;
       left /= 2, schedule.next_step())
    for (int v = 0; v < left && v + left < n; ++v) {
      const int from = v + left;  // which has got the sums of those 2·left, 4·left, … after it
      schedule.reduce(rank_of(shape, from), rank_of(shape, v), 0, (n - from - 1) / (2 * left) + 1);
    }
  return schedule;
}

constexpr int radix = 2;  // of the k-nomial tree that it is

/// Binomial tree: each step doubles the number of ranks that have the data (broadcast, scatter), or halves the number
/// of ranks that still hold some (reduce, gather).
///
///   steps ceil(log2 n)   sent per rank at most bytes·ceil(log2 n) (broadcast), bytes (reduce), bytes·(n-1)/n (scatter)
///   any n ≥ 2, any root   order of sums: by rank in each addition
Schedule build(const Shape& shape, int) {
  if (shape.collective == Collective::broadcast) return broadcast(shape);
  if (shape.collective == Collective::reduce) return reduce(shape);
  return algorithm::k_nomial.build(shape, radix);
}

int items(const Shape& shape, int) {
  return algorithm::k_nomial.items(shape, radix);
}

}  // namespace

const Family algorithm::binomial{
    .name = "binomial",
    .supports = supports_any_of<Collective::broadcast, Collective::reduce, Collective::gather, Collective::scatter>,
    .build = build,
    .carried_by = only_carried<Collective::broadcast>,
    .items = items};

}  // namespace tutti
