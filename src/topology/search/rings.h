// Rings that pass every GPU once and share no link, and trees for machines where rings do not use all links.
#pragma once

#include <vector>

#include "topology/search/capacity.h"

namespace tutti::topology {

/// Rings through all GPUs, each with one link's rate divided by `share`.
struct Rings {
  int share = 1;
  std::vector<std::vector<int>> orders;                                       ///< indexes of topology.gpus()
  double rate() const { return static_cast<double>(orders.size()) / share; }  ///< in links
};

/// As many rings as are found, half-rate rings if these carry more. Never more than least_cut; equal in every run.
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

/// Spanning trees, equally many for all roots, that reach gather_bound; none if there are switches between GPUs, more
/// than 64 GPUs, or GPUs that cannot be reached. Berczi and Frank's packing of arborescences as used by ForestColl.
Trees pack_trees(const Capacity& capacity);

}  // namespace tutti::topology
