// A tree whose nodes have k-1 children per level.
#include <algorithm>
#include <cassert>

#include "algorithms/algorithm.h"
#include "algorithms/digits.h"

namespace tutti {
namespace {

// Ranks are numbered from the root on, cyclically: v = 0 is the root.

Schedule broadcast(const Shape& shape, int radix) {
  const int n = shape.ranks;
  const auto rank = [&](int v) { return (v + shape.root) % n; };
  Schedule schedule(shape, /*parts=*/1);
  schedule.copy(shape.root, shape.root, 0);
  for (int have = 1; have < n; have *= radix, schedule.next_step())
    for (int v = 0; v < have; ++v)
      for (int to = v + have; to < std::min(n, radix * have); to += have) schedule.copy(rank(v), rank(to), 0);
  return schedule;
}

/// `from` has got the sums of those radix · left, 2 · radix · left, … after it.
Schedule reduce(const Shape& shape, int radix) {
  const int n = shape.ranks;
  const auto rank = [&](int v) { return (v + shape.root) % n; };
  int left = 1;
  while (left * radix < n) left *= radix;
  Schedule schedule(shape, /*parts=*/1);
  for (; left >= 1; left /= radix, schedule.next_step())
    for (int v = 0; v < left; ++v)
      for (int from = v + left; from < std::min(n, radix * left); from += left)
        schedule.reduce(rank(from), rank(v), 0, (n - from - 1) / (radix * left) + 1);
  return schedule;
}

/// Where `v` stores data on its way from or to `u` in its subtree; a rank's own block is never stored there.
Ref waiting(int v, int u) {
  return {Buffer::scratch, u - v - 1};
}

Schedule gather(const Shape& shape, int radix) {
  const int n = shape.ranks;
  const auto rank = [&](int v) { return (v + shape.root) % n; };
  const auto held = [&](int v, int u) {
    if (v == 0) return Ref{Buffer::output, rank(u)};
    return u == v ? Ref{Buffer::input, 0} : waiting(v, u);
  };
  Schedule schedule(shape, /*parts=*/1);
  schedule.copy(shape.root, {Buffer::input, 0}, shape.root, held(0, 0));
  for (int span = 1; span < n; span *= radix, schedule.next_step())
    for_each_branch(n, radix, span, [&](int top, int below, int end) {
      for (int u = below; u < end && schedule.keeps(rank(below), rank(top)); ++u)
        schedule.copy(rank(below), held(below, u), rank(top), held(top, u));
    });
  return schedule;
}

Schedule scatter(const Shape& shape, int radix) {
  const int n = shape.ranks;
  const auto rank = [&](int v) { return (v + shape.root) % n; };
  const auto held = [&](int v, int u) { return v == 0 ? Ref{Buffer::input, rank(u)} : waiting(v, u); };
  int span = 1;
  while (span < n) span *= radix;
  Schedule schedule(shape, /*parts=*/1);
  schedule.copy(shape.root, held(0, 0), shape.root, {Buffer::output, 0});
  for (span /= radix; span >= 1; span /= radix, schedule.next_step())
    for_each_branch(n, radix, span, [&](int top, int below, int end) {
      for (int u = below; u < end && schedule.keeps(rank(top), rank(below)); ++u)
        schedule.copy(rank(top), held(top, u), rank(below), u == below ? Ref{Buffer::output, 0} : held(below, u));
    });
  return schedule;
}

/// k-nomial tree: each step multiplies by k the number of ranks that have the data (broadcast, scatter), or divides by
/// k the number of ranks that still hold some (reduce, gather). With k = 2 it is the binomial tree.
///
///   steps ceil(log_k n)   messages per rank and step at most k-1
///   sent per rank at most bytes·(k-1)·ceil(log_k n) (broadcast), bytes (reduce), bytes·(n-1)/n (scatter)
///   any n ≥ 2, any root   order of sums: by rank in each addition
///
/// Wilkins et al., "Generalized collective algorithms for the exascale era", CLUSTER 2023.
Schedule build(const Shape& shape, int radix) {
  if (shape.collective == Collective::gather) return gather(shape, radix);
  if (shape.collective == Collective::scatter) return scatter(shape, radix);
  if (shape.collective == Collective::reduce) return reduce(shape, radix);
  assert(shape.collective == Collective::broadcast);
  return broadcast(shape, radix);
}

/// The blocks of the largest subtree of a rank other than the root.
int items(const Shape& shape, int radix) {
  if (shape.collective == Collective::broadcast || shape.collective == Collective::reduce) return 1;
  int most = 1;
  for (int span = 1; span < shape.ranks; span *= radix) most = std::max(most, std::min(span, shape.ranks - span));
  return most;
}

constexpr int radices[] = {4, 3, 6};

}  // namespace

const Family algorithm::k_nomial{
    .name = "k_nomial",
    .supports = supports_any_of<Collective::broadcast, Collective::reduce, Collective::gather, Collective::scatter>,
    .build = build,
    .carried_by = only_carried<Collective::broadcast>,
    .items = items,
    .parameter = "radix",
    .values = radices};

}  // namespace tutti
