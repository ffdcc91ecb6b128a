// How the chunks of one rank reach all other ranks.
#include "algorithms/spread.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <ranges>
#include <utility>

namespace tutti {
namespace {

constexpr int never = std::numeric_limits<int>::max();

}  // namespace

Tree::Tree(std::vector<int> parents) : parents_(std::move(parents)), depths_(parents_.size(), none) {
  root_ = static_cast<int>(std::ranges::find(parents_, none) - parents_.begin());
  assert(root_ < size());
  depths_[static_cast<std::size_t>(root_)] = 0;
  for (int v = 0; v < size(); ++v) {
    std::vector<int> path;  // up to an ancestor of known depth
    int above = v;
    for (; depth(above) == none; above = parent(above)) path.push_back(above);
    for (int edges = depth(above); const int below : std::views::reverse(path))
      depths_[static_cast<std::size_t>(below)] = ++edges;
  }
  at_depth_.resize(static_cast<std::size_t>(height()) + 1);
  for (int v = 0; v < size(); ++v) at_depth_[static_cast<std::size_t>(depth(v))].push_back(v);
}

int Tree::height() const {
  return std::ranges::max(depths_);
}

std::vector<int> Tree::children(int v) const {
  std::vector<int> all;
  for (int child = 0; child < size(); ++child)
    if (parent(child) == v) all.push_back(child);
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

void Spread::hop(int from, int to, int chunk) {
  if (arrival(to, chunk) != never) return;
  assert(arrival(from, chunk) < step_);
  arrival(to, chunk) = step_;
  hops_.push_back({.step = step_, .from = from, .to = to, .chunk = chunk});
}

void Spread::pipeline(const Tree& tree, int step, int first, int stride) {
  const int last = (chunks_ - 1 - first) / stride;  // chunks are counted along the pipeline
  for (int depth = std::max(step + 1 - last, 1); depth <= std::min(step + 1, tree.height()); ++depth)
    for (const int v : tree.at_depth(depth)) hop(tree.parent(v), v, first + stride * (step + 1 - depth));
}

Schedule Spread::schedule(const Shape& shape, std::span<const Rank> rank_of) const {
  const auto rank = [&](int v) {
    return rank_of.empty() ? (v + shape.root) % ranks_ : rank_of[static_cast<std::size_t>(v)];
  };
  const auto play = [&](auto hops, auto hand) {
    Schedule schedule(shape, chunks_);
    if (shape.collective == Collective::broadcast)
      for (int chunk = 0; chunk < chunks_; ++chunk) schedule.copy(shape.root, shape.root, chunk);
    for (int step = hops.empty() ? 0 : hops.front().step; const Hop& hop : hops) {
      if (std::exchange(step, hop.step) != hop.step) schedule.next_step();
      hand(schedule, hop);
    }
    schedule.next_step();
    return schedule;
  };
  if (shape.collective == Collective::reduce)
    return play(std::views::reverse(hops_),
                [&](Schedule& schedule, const Hop& hop) { schedule.reduce(rank(hop.to), rank(hop.from), hop.chunk); });
  return play(std::views::all(hops_),
              [&](Schedule& schedule, const Hop& hop) { schedule.copy(rank(hop.from), rank(hop.to), hop.chunk); });
}

Schedule pipelined(const Shape& shape, const Tree& tree, int chunks) {
  Spread spread(shape.ranks, chunks);
  for (int step = 0; step < tree.height() + chunks - 1; ++step, spread.next_step()) spread.pipeline(tree, step);
  return spread.schedule(shape);
}

}  // namespace tutti
