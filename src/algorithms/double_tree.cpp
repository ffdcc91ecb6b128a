// Two binary trees over the same ranks that share the work of inner nodes.
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/spread.h"

namespace tutti {
namespace {

/// In-order over [begin, end), with begin even: even nodes are the leaves, odd nodes the inner nodes.
void grow(std::vector<int>& parents, int begin, int end, int parent) {
  if (begin >= end) return;
  const int inner = (end - begin) / 2;
  const int top = inner == 0 ? begin : begin + 2 * (inner / 2) + 1;
  parents[static_cast<std::size_t>(top)] = parent;
  if (inner == 0) return;
  grow(parents, begin, top, top);
  grow(parents, top + 1, end, top);
}

/// The tree over all ranks but the root, with the root above it.
Tree fed_by_root(const Tree& tree) {
  std::vector<int> parents{Tree::none};
  for (int v = 0; v < tree.size(); ++v) parents.push_back(tree.parent(v) == Tree::none ? 0 : tree.parent(v) + 1);
  return Tree(std::move(parents));
}

/// Sums of even chunks go up one tree, sums of odd chunks the other; they come down again while later chunks go up.
Schedule all_reduce(const Shape& shape, int chunks) {
  const std::array trees = double_tree(shape.ranks);
  const int height = trees[0].height(), count = chunks / 2;
  const std::array sizes{trees[0].sizes(), trees[1].sizes()};
  const std::array nodes{trees[0].nodes_near(shape.only), trees[1].nodes_near(shape.only)};
  Schedule schedule(shape, chunks);
  for (int step = 0; step < 2 * height + count - 1; ++step, schedule.next_step())
    for (int i = 0; i < 2; ++i)
      for (const int v : nodes[static_cast<std::size_t>(i)]) {
        const Tree& tree = trees[static_cast<std::size_t>(i)];
        const int parent = tree.parent(v);
        const int up = step - (height - tree.depth(v)), down = step - (height + tree.depth(v) - 1);
        const int inputs = sizes[static_cast<std::size_t>(i)][static_cast<std::size_t>(v)];
        if (up >= 0 && up < count) schedule.reduce(v, parent, 2 * up + i, inputs);
        if (down >= 0 && down < count) schedule.copy(parent, v, 2 * down + i);
      }
  return schedule;
}

/// Double tree: the root sends even chunks to the top of one tree over all other ranks, odd chunks to the top of a
/// second tree in which the leaves of the first are inner nodes.
///
///   steps floor(log2(n-1)) + chunks/2   sent per rank at most bytes, to two others in a step (reduce: to one or two)
///   any n ≥ 2, any root   order of sums: by rank in each addition
///
/// Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing
/// 2009. They color the edges, so that a rank with one port communicates with one other rank at a time, in twice the
/// steps.
///
/// All-reduce: up and down the same two trees, over all ranks.
///
///   steps 2·floor(log2 n) + chunks/2 - 1   sent per rank at most 2·bytes, in at most four messages in a step
///   any n ≥ 2   order of sums: by rank, with both children in one pass
Schedule build(const Shape& shape, int chunks) {
  if (shape.collective == Collective::all_reduce) return all_reduce(shape, chunks);
  const auto [even, odd] = double_tree(shape.ranks - 1);
  const std::array trees{fed_by_root(even), fed_by_root(odd)};
  const Pipeline pipelines[] = {{.tree = &trees[0], .first = 0, .stride = 2},
                                {.tree = &trees[1], .first = 1, .stride = 2}};
  return pipelined(shape, pipelines, chunks);
}

/// Of each tree one. Few pairs of ranks are joined by both, but all ranks must know of it.
int items(const Shape&, int) {
  return 2;
}

constexpr int chunks[] = {8, 2, 16};

}  // namespace

std::array<Tree, 2> double_tree(int n) {
  std::vector<int> first(static_cast<std::size_t>(n));
  grow(first, 0, n, Tree::none);
  // Mirroring exchanges leaves and inner nodes if the number of nodes is even; if it is odd, a cyclic shift by one
  // does.
  std::vector<int> second(first.size());
  const auto moved = [n](int v) { return n % 2 == 0 ? n - 1 - v : (v + 1) % n; };
  for (int v = 0; v < n; ++v) {
    const int parent = first[static_cast<std::size_t>(v)];
    second[static_cast<std::size_t>(moved(v))] = parent == Tree::none ? Tree::none : moved(parent);
  }
  return {Tree(std::move(first)), Tree(std::move(second))};
}

const Family algorithm::double_tree{
    .name = "double_tree",
    .supports = supports_any_of<Collective::all_reduce, Collective::broadcast, Collective::reduce>,
    .build = build,
    .carried_by = carried_except<Collective::reduce>,
    .items = items,
    .parameter = "chunks",
    .values = chunks};

}  // namespace tutti
