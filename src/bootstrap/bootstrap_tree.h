// The tree of the start: which rank is whose parent. It grows in the order of arrival. No sockets here.
#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/system.h"

namespace tutti::bootstrap {

/// The root has at most `fan_out` children, and so has each rank that accepts children, as long as the ranks asked to
/// accept children can do so and are reached. The first ranks to come are asked, so that later ranks find a place at
/// once. With `fan_out` ranks or fewer the tree is a star.
class Tree {
 public:
  static constexpr int root = -1;

  explicit Tree(int fan_out) : fan_out_(fan_out) {}

  /// Rank `rank` of `ranks` has arrived; once per rank. True: it is asked to accept children, and will report whether
  /// it listens.
  bool arrive(int rank, int ranks);
  /// The answer of a rank that was asked and has a place; other ranks' answers are ignored. An empty host: no children.
  void listens(int rank, SocketAddress at);

  /// Gives the rank the free place nearest to the root. Nothing: a rank that was asked to listen has not answered yet.
  std::optional<int> place(int rank);
  /// Makes the rank a child of the root, whatever the root's fan-out: the rank reached no other parent, has waited too
  /// long, or is in the root's process.
  void adopt(int rank) { hang(rank, root); }

  /// `root`, or a rank; also `root` while the rank has no place.
  int parent(int rank) const { return nodes_[index(rank)].parent; }
  /// Requires a rank that listens.
  const SocketAddress& address(int rank) const { return nodes_[index(rank)].at; }

  /// Number of steps from the root to the deepest rank; largest number of children of any rank.
  int depth() const { return depth_; }
  int widest() const { return widest_; }

 private:
  enum class Role { leaf, chosen, asked, listens };
  struct Node {
    Role role = Role::leaf;
    int parent = root;
    int depth = 0;
    int children = 0;
    SocketAddress at = {};
  };
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  void hang(int rank, int below);

  int fan_out_;
  std::vector<Node> nodes_;                  ///< by rank
  std::set<std::pair<int, int>> with_room_;  ///< depth and rank of those that can take another child
  int takers_ = 0;                           ///< ranks that are chosen, asked or listening
  int unanswered_ = 0;
  int below_root_ = 0;
  int depth_ = 0;
  int widest_ = 0;
};

}  // namespace tutti::bootstrap
