// How the chunks of one rank reach all other ranks.
#include "algorithms/spread.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <span>
#include <utility>

#include "algorithms/skips.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

constexpr int never = std::numeric_limits<int>::max();

/// v passes half of the chunks of its subtree, those of [v + span, v + 2·span), to the first rank of that half.
Spread scattered(int n) {
  Spread spread(n, /*chunks=*/n);
  const int top = static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))) / 2;
  for (int span = top; span >= 1; span /= 2, spread.next_step())
    for (int v = 0; v + span < n; v += 2 * span)
      for (int chunk = v + span; chunk < std::min(n, v + 2 * span); ++chunk) spread.hop(v, v + span, chunk);
  return spread;
}

}  // namespace

Tree::Tree(std::vector<int> parents) : parents_(std::move(parents)), depths_(parents_.size(), none) {
  const auto root = std::ranges::find(parents_, none) - parents_.begin();
  assert(root < size());
  depths_[static_cast<std::size_t>(root)] = 0;
  for (int v = 0; v < size(); ++v) {
    std::vector<int> path;  // up to an ancestor of known depth
    int above = v;
    for (; depth(above) == none; above = parent(above)) path.push_back(above);
    for (int edges = depth(above); const int below : Reversed(path)) depths_[static_cast<std::size_t>(below)] = ++edges;
  }
}

std::vector<int> Tree::sizes() const {
  std::vector<std::vector<int>> levels(static_cast<std::size_t>(height()) + 1);
  for (int v = 0; v < size(); ++v) levels[static_cast<std::size_t>(depth(v))].push_back(v);
  std::vector<int> sizes(parents_.size(), 1);
  for (const std::vector<int>& level : Reversed(levels))
    for (const int v : level)
      if (parent(v) != none) sizes[static_cast<std::size_t>(parent(v))] += sizes[static_cast<std::size_t>(v)];
  return sizes;
}

std::vector<int> Tree::nodes_near(int v) const {
  std::vector<int> all;
  for (int node = 0; node < size(); ++node)
    if (parent(node) != none && (v == none || node == v || parent(node) == v)) all.push_back(node);
  return all;
}

Spread::Spread(int ranks, int chunks)
    : ranks_(ranks),
      chunks_(chunks),
      arrivals_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(chunks), never) {
  for (int chunk = 0; chunk < chunks; ++chunk) arrival(0, chunk) = -1;
}

int& Spread::arrival(int v, int chunk) {
  assert(v >= 0 && v < ranks_ && chunk >= 0 && chunk < chunks_);
  return arrivals_[static_cast<std::size_t>(v) * static_cast<std::size_t>(chunks_) + static_cast<std::size_t>(chunk)];
}

Spread Spread::of_new_chunks(const Shape& shape, int chunks) {
  Spread spread(shape.ranks, chunks);
  if (shape.only == Shape::everybody) return spread;
  spread.only_ = (shape.only - shape.root + shape.ranks) % shape.ranks;
  spread.keeps_all_ = shape.collective == Collective::reduce;
  spread.arrivals_.clear();
  return spread;
}

void Spread::hop(int from, int to, int chunk) {
  if (only_ == Shape::everybody) {
    if (arrival(to, chunk) != never) return;
    assert(arrival(from, chunk) < step_);
    arrival(to, chunk) = step_;
  }
  if (step_ != last_step_) ++steps_;
  last_step_ = step_;
  if (keeps_all_ || from == only_ || to == only_)
    hops_.push_back({.step = steps_ - 1, .from = from, .to = to, .chunk = chunk});
}

Schedule Spread::schedule(const Shape& shape, std::span<const Rank> rank_of) const {
  const auto rank = [&](int v) {
    return rank_of.empty() ? (v + shape.root) % ranks_ : rank_of[static_cast<std::size_t>(v)];
  };
  const auto play = [&](auto hops, auto hand) {
    Schedule schedule(shape, chunks_);
    if (shape.collective == Collective::broadcast)
      for (int chunk = 0; chunk < chunks_; ++chunk) schedule.copy(shape.root, shape.root, chunk);
    for (const Hop& hop : hops) {
      schedule.begin_step(shape.collective == Collective::reduce ? steps_ - 1 - hop.step : hop.step);
      hand(schedule, hop);
    }
    schedule.end_at(steps_);
    return schedule;
  };
  if (shape.collective == Collective::reduce) {
    std::vector<int> sums(static_cast<std::size_t>(ranks_) * static_cast<std::size_t>(chunks_), 1);  // of inputs
    const auto sum = [&](int v, int chunk) -> int& {
      return sums[static_cast<std::size_t>(v) * static_cast<std::size_t>(chunks_) + static_cast<std::size_t>(chunk)];
    };
    return play(Reversed(hops_), [&](Schedule& schedule, const Hop& hop) {
      schedule.reduce(rank(hop.to), rank(hop.from), hop.chunk, sum(hop.to, hop.chunk));
      sum(hop.from, hop.chunk) += sum(hop.to, hop.chunk);
    });
  }
  return play(std::span(hops_),
              [&](Schedule& schedule, const Hop& hop) { schedule.copy(rank(hop.from), rank(hop.to), hop.chunk); });
}

Schedule pipelined(const Shape& shape, std::span<const Pipeline> pipelines, int chunks) {
  const int n = shape.ranks;
  const bool down = shape.collective == Collective::broadcast;
  const auto rank = [&](int v) { return (v + shape.root) % n; };
  int steps = 0;
  for (const Pipeline& pipeline : pipelines)
    steps = std::max(steps, pipeline.tree->height() + (chunks - 1 - pipeline.first) / pipeline.stride);
  std::vector<std::vector<int>> nodes, sizes;  // of each tree: those whose edge to the parent counts; of all subtrees
  for (const Pipeline& pipeline : pipelines) {
    nodes.push_back(
        pipeline.tree->nodes_near(shape.only == Shape::everybody ? Tree::none : (shape.only - shape.root + n) % n));
    sizes.push_back(pipeline.tree->sizes());
  }
  Schedule schedule(shape, chunks);
  for (int chunk = 0; chunk < chunks && down; ++chunk) schedule.copy(shape.root, shape.root, chunk);
  for (int i = 0; i < steps; ++i, schedule.next_step()) {
    const int step = down ? i : steps - 1 - i;  // a reduce takes the steps of a broadcast backwards
    for (std::size_t at = 0; at < pipelines.size(); ++at) {
      const auto& [tree, first, stride] = pipelines[at];
      for (const int v : nodes[at]) {
        const int chunk = first + stride * (step + 1 - tree->depth(v));
        if (chunk < first || chunk >= chunks) continue;
        if (down)
          schedule.copy(rank(tree->parent(v)), rank(v), chunk);
        else
          schedule.reduce(rank(v), rank(tree->parent(v)), chunk, sizes[at][static_cast<std::size_t>(v)]);
      }
    }
  }
  return schedule;
}

Schedule scatter_then_ring(const Shape& shape, int) {
  const int n = shape.ranks;
  Spread spread = scattered(n);
  for (int step = 0; step < n - 1; ++step, spread.next_step())
    for (int v = 0; v < n; ++v) spread.hop(v, (v + 1) % n, (v - step + n) % n);
  return spread.schedule(shape);
}

Schedule scatter_then_circulant(const Shape& shape, int) {
  const int n = shape.ranks;
  Spread spread = scattered(n);
  const std::vector<int> skips = circulant_skips(n);
  for (std::size_t i = skips.size() - 1; i > 0; --i, spread.next_step()) {
    const int skip = skips[i];  // each v has chunks [v, v + skip), cyclically
    for (int v = 0; v < n; ++v)
      for (int u = v; u < v + skips[i - 1] - skip; ++u) spread.hop(v, (v - skip + n) % n, u % n);
  }
  return spread.schedule(shape);
}

}  // namespace tutti
