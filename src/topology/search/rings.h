// Rings that pass every GPU once and share no link, and the trees to use where rings fall short.
#pragma once

#include <vector>

#include "topology/search/capacity.h"

namespace tutti::topology {

/// Rings through all GPUs, each at one link's rate divided by `share`.
struct Rings {
  int share = 1;
  std::vector<std::vector<int>> orders;                                       ///< places in topology.gpus()
  double rate() const { return static_cast<double>(orders.size()) / share; }  ///< in links
};

/// As many as found, half-rate ones where these carry more. Never more than least_cut; the same every time.
Rings pack_rings(const Capacity& capacity);

/// Data of `root` goes from parent[v] to v, at `units` links' rate divided by Trees::share.
struct Tree {
  int root = 0;
  long long units = 1;
  std::vector<int> parent;  ///< -1 at the root
};
struct Trees {
  long long share = 1;
  std::vector<Tree> trees;
};

/// Spanning trees of all roots alike that reach gather_bound; none where there are switches between GPUs, more than 64
/// GPUs, or no way to all of them. Berczi and Frank's packing of arborescences as ForestColl uses it.
Trees pack_trees(const Capacity& capacity);

}  // namespace tutti::topology
