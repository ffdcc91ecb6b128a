// Under whom each rank hangs at the start: a tree that grows in the order of arrival. No sockets here.
#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/system.h"

namespace tutti::bootstrap {

/// At most `fan_out` ranks hang below the root, and below each rank that takes some, as long as those asked to take
/// some can and are reached; the first to come are asked, so that whoever comes later finds a place at once. With
/// `fan_out` ranks or fewer it is a star.
class Tree {
 public:
  static constexpr int root = -1;

  explicit Tree(int fan_out) : fan_out_(fan_out) {}

  /// A rank of `ranks` has come, each once. True: it is asked to take others, and will say whether it listens.
  bool arrive(int rank, int ranks);
  /// The answer of one who was asked and has a place. Others' answers are ignored; an empty host: it takes none.
  void listens(int rank, SocketAddress at);

  /// Gives the rank a place as near to the root as there is. Nothing: somebody who was asked has not answered yet.
  std::optional<int> place(int rank);
  /// Below the root whatever hangs there: it reached nobody else, or waits for too long.
  void adopt(int rank);

  /// `root`, or a rank; `root` as well as long as it has no place.
  int parent(int rank) const { return nodes_[index(rank)].parent; }
  /// Requires a rank that listens.
  const SocketAddress& address(int rank) const { return nodes_[index(rank)].at; }

  /// How many steps it is from the root to the deepest rank; how many ranks hang below one at most.
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
  std::set<std::pair<int, int>> with_room_;  ///< depth and rank of those who can take more
  int takers_ = 0;                           ///< chosen, asked or listening
  int unanswered_ = 0;
  int below_root_ = 0;
  int depth_ = 0;
  int widest_ = 0;
};

}  // namespace tutti::bootstrap
