#include "bootstrap/bootstrap_tree.h"

#include <algorithm>
#include <cassert>

namespace tutti::bootstrap {

bool Tree::arrive(int rank, int ranks) {
  if (nodes_.empty()) nodes_.resize(index(ranks));
  assert(nodes_[index(rank)].role == Role::leaf);
  if (std::int64_t{fan_out_} * (1 + takers_) >= ranks) return false;
  nodes_[index(rank)].role = Role::chosen;
  ++takers_;
  return true;
}

void Tree::listens(int rank, SocketAddress at) {
  Node& node = nodes_[index(rank)];
  if (node.role != Role::asked) return;
  --unanswered_;
  if (at.host.empty()) {
    node.role = Role::leaf;
    --takers_;  // a rank that comes later is asked instead
    return;
  }
  node.role = Role::listens;
  node.at = std::move(at);
  with_room_.emplace(node.depth, rank);
}

std::optional<int> Tree::place(int rank) {
  if (below_root_ < fan_out_ || (with_room_.empty() && unanswered_ == 0)) {
    hang(rank, root);
    return root;
  }
  if (with_room_.empty()) return std::nullopt;
  const auto nearest = with_room_.begin();
  const int parent = nearest->second;
  hang(rank, parent);
  if (nodes_[index(parent)].children == fan_out_) with_room_.erase(nearest);
  return parent;
}

void Tree::hang(int rank, int below) {
  Node& node = nodes_[index(rank)];
  if (node.role == Role::chosen) {  // learns of it together with its place
    node.role = Role::asked;
    ++unanswered_;
  }
  // The place that an adopted rank leaves stays empty: a parent that one rank could not reach may be unreachable for
  // others.
  node.parent = below;
  node.depth = below == root ? 1 : nodes_[index(below)].depth + 1;
  int& children = below == root ? below_root_ : nodes_[index(below)].children;
  ++children;
  depth_ = std::max(depth_, node.depth);
  widest_ = std::max(widest_, children);
}

}  // namespace tutti::bootstrap
