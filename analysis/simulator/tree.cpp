// Links and paths of a tree of switches.
#include <fmt/format.h>

#include <cassert>
#include <utility>

#include "analysis/simulator/messages.h"
#include "analysis/simulator/topology.h"

namespace tutti::simulator {
Tree::Tree(std::vector<TreeLevel> levels) : tree_(std::move(levels)), counts_(tree_.size() + 1, 1) {
  assert(!tree_.empty());
  for (std::size_t level = tree_.size(); level-- > 0;) counts_[level] = counts_[level + 1] * tree_[level].size;
  for (const int count : counts_) endpoints_ += count;
  double below = 0;
  for (std::size_t level = 0; level < tree_.size(); ++level) {
    const TreeLevel& l = tree_[level];
    assert(l.latency_ns >= below && l.size >= 1 && l.links >= 1);
    first_links_.push_back(static_cast<int>(links_.size()));
    const Link link{.bytes_per_ns = l.bytes_per_ns, .latency_ns = (l.latency_ns - below) / 2};  // once up, once down
    links_.insert(links_.end(), index(counts_[level]) * index(l.links) * 2, link);
    below = l.latency_ns;
  }
}

Rank Tree::switch_above(int level, int child) const {
  Rank endpoint = 0;
  for (int below = 0; below <= level; ++below) endpoint += counts_[index(below)];
  return endpoint + child / tree_[index(level)].size;
}

Tree::Node Tree::node_of(Rank endpoint) const {
  Node node{.level = 0, .index = endpoint};
  for (; node.index >= counts_[index(node.level)]; ++node.level) node.index -= counts_[index(node.level)];
  return node;
}

/// The link of `child`, towards its switch (0) or from it (1), for a message whose end on this side is `end`.
int Tree::link_of(Node child, Rank end, int direction) const {
  const TreeLevel& level = tree_[index(child.level)];
  const int span = counts_[0] / counts_[index(child.level)];
  const int rail = end < ranks() ? end % span % level.links : 0;
  return first_links_[index(child.level)] + (child.index * level.links + rail) * 2 + direction;
}

void Tree::route(Rank from, Rank to, std::vector<int>& path) const {
  path.clear();
  Node up = node_of(from), down = node_of(to);
  const auto rise = [&](Node& node) { node = {node.level + 1, node.index / tree_[index(node.level)].size}; };
  std::size_t ups = 0;
  while (up.level != down.level || up.index != down.index) {
    if (up.level <= down.level) {
      path.insert(path.begin() + static_cast<std::ptrdiff_t>(ups++), link_of(up, from, 0));
      if (up.level == down.level) {
        path.insert(path.begin() + static_cast<std::ptrdiff_t>(ups), link_of(down, to, 1));
        rise(down);
      }
      rise(up);
    } else {
      path.insert(path.begin() + static_cast<std::ptrdiff_t>(ups), link_of(down, to, 1));
      rise(down);
    }
  }
}

std::string Tree::link_name(int link) const {
  std::size_t level = tree_.size() - 1;
  while (first_links_[level] > link) --level;
  const int number = link - first_links_[level], rails = tree_[level].links;
  const int child = number / 2 / rails, span = counts_[0] / counts_[level];
  const std::string who =
      span == 1 ? fmt::format("rank {}", child) : fmt::format("ranks {}-{}", child * span, (child + 1) * span - 1);
  const std::string rail = rails == 1 ? "" : fmt::format(", link {}", number / 2 % rails);
  return fmt::format("{}{}, {}", who, rail, number % 2 == 0 ? "up" : "down");
}

std::vector<Cut> Tree::cuts() const {
  std::vector<Cut> cuts;
  for (std::size_t level = 0; level < tree_.size(); ++level)
    cuts.push_back({.groups = counts_[level], .bytes_per_ns = tree_[level].links * tree_[level].bytes_per_ns});
  return cuts;
}

std::vector<Level> Tree::levels() const {
  std::vector<Level> levels;
  for (std::size_t level = tree_.size() - 1; level >= 1; --level) {
    const int span = counts_[0] / counts_[level];
    if (span == 1 || span == counts_[0]) continue;
    Level& groups = levels.emplace_back(index(counts_[0]));
    for (Rank rank = 0; rank < counts_[0]; ++rank) groups[index(rank)] = rank / span;
  }
  return levels;
}

}  // namespace tutti::simulator
