// A tree whose root's children have subtrees of 1, 2, 4, … ranks.
#include <algorithm>
#include <bit>
#include <cassert>

#include "algorithms/algorithm.h"

namespace tutti {
namespace {

/// Ranks are numbered from the root on, cyclically: v = 0 is the root, v's subtree is [v, v + span).
class Tree {
 public:
  explicit Tree(const Shape& shape) : n_(shape.ranks), root_(shape.root) {}

  int top() const { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n_))) / 2; }
  int size() const { return n_; }
  Rank rank(int v) const { return (v + root_) % n_; }
  int end(int v, int span) const { return std::min(v + span, n_); }

 private:
  int n_;
  Rank root_;
};

Schedule broadcast(const Shape& shape, const Tree& tree) {
  Schedule schedule(shape, /*parts=*/1);
  schedule.copy(shape.root, shape.root, 0);
  for (int have = 1; have < tree.size(); have *= 2, schedule.next_step())
    for (int v = 0; v < have && v + have < tree.size(); ++v) schedule.copy(tree.rank(v), tree.rank(v + have), 0);
  return schedule;
}

Schedule reduce(const Shape& shape, const Tree& tree) {
  Schedule schedule(shape, /*parts=*/1);
  for (int left = tree.top(); left >= 1; left /= 2, schedule.next_step())
    for (int v = 0; v < left && v + left < tree.size(); ++v) {
      const int from = v + left;  // which has got the sums of those 2·left, 4·left, … after it
      schedule.reduce(tree.rank(from), tree.rank(v), 0, (tree.size() - from - 1) / (2 * left) + 1);
    }
  return schedule;
}

/// Where `v` stores data on its way from or to `u` in its subtree; a rank's own block is never stored there.
Ref waiting(int v, int u) {
  return {Buffer::scratch, u - v - 1};
}

Schedule gather(const Shape& shape, const Tree& tree) {
  Schedule schedule(shape, /*parts=*/1);
  const auto held = [&](int v, int u) {
    if (v == 0) return Ref{Buffer::output, tree.rank(u)};
    return u == v ? Ref{Buffer::input, 0} : waiting(v, u);
  };
  schedule.copy(shape.root, {Buffer::input, 0}, shape.root, held(0, 0));
  for (int span = 1; span < tree.size(); span *= 2, schedule.next_step())
    for (int v = span; v < tree.size(); v += 2 * span)
      for (int u = v; u < tree.end(v, span) && schedule.keeps(tree.rank(v), tree.rank(v - span)); ++u)
        schedule.copy(tree.rank(v), held(v, u), tree.rank(v - span), held(v - span, u));
  return schedule;
}

Schedule scatter(const Shape& shape, const Tree& tree) {
  Schedule schedule(shape, /*parts=*/1);
  const auto held = [&](int v, int u) { return v == 0 ? Ref{Buffer::input, tree.rank(u)} : waiting(v, u); };
  schedule.copy(shape.root, held(0, 0), shape.root, {Buffer::output, 0});
  for (int span = tree.top(); span >= 1; span /= 2, schedule.next_step())
    for (int v = span; v < tree.size(); v += 2 * span)
      for (int u = v; u < tree.end(v, span) && schedule.keeps(tree.rank(v - span), tree.rank(v)); ++u)
        schedule.copy(tree.rank(v - span), held(v - span, u), tree.rank(v),
                      u == v ? Ref{Buffer::output, 0} : held(v, u));
  return schedule;
}

/// Binomial tree: each step doubles the number of ranks that have the data (broadcast, scatter), or halves the number
/// of ranks that still hold some (reduce, gather).
///
///   steps ceil(log2 n)   sent per rank at most bytes·ceil(log2 n) (broadcast), bytes (reduce), bytes·(n-1)/n (scatter)
///   any n ≥ 2, any root   order of sums: by rank in each addition
Schedule build(const Shape& shape, int) {
  const Tree tree(shape);
  if (shape.collective == Collective::broadcast) return broadcast(shape, tree);
  if (shape.collective == Collective::reduce) return reduce(shape, tree);
  if (shape.collective == Collective::gather) return gather(shape, tree);
  assert(shape.collective == Collective::scatter);
  return scatter(shape, tree);
}

/// The blocks of the largest subtree of a rank other than the root.
int items(const Shape& shape, int) {
  if (shape.collective == Collective::broadcast || shape.collective == Collective::reduce) return 1;
  const int top = Tree(shape).top();
  return std::max({shape.ranks - top, top / 2, 1});
}

}  // namespace

const Family algorithm::binomial{.name = "binomial",
                                 .supports = from_or_to_root,
                                 .build = build,
                                 .carried_by = broadcast_carried_except_inline,
                                 .items = items};

}  // namespace tutti
