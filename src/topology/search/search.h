// The rings and trees for the machine's GPUs, with rates in GB/s.
#pragma once

#include <vector>

#include "topology/graph/topology.h"
#include "topology/search/rings.h"

namespace tutti::topology {

struct Channels {
  PathKind kind = PathKind::dis;  ///< of the farthest hop of a ring; dis: fewer than two GPUs
  double gbps_each = 0;           ///< of one ring, in each direction
  /// numbers of GPUs (Device::index), from each to the next and back to the first
  std::vector<std::vector<int>> orders;
  double gbps() const { return gbps_each * static_cast<double>(orders.size()); }
};

struct ChosenTree {
  double gbps = 0;          ///< of the root's data
  int root = 0;             ///< number of a GPU
  std::vector<int> gpus;    ///< numbers, parents before children
  std::vector<int> parent;  ///< of each of `gpus`, a number; -1 at the root
};

struct Search {
  Channels rings;
  std::vector<ChosenTree> trees;  ///< for an all-gather, if rings do not reach the bound
  double tree_gather_gbps = 0;    ///< all-gather on the trees: GB/s of its output at each GPU
  double ring_gather_gbps = 0;    ///< all-gather on the rings
  double bound_gbps = 0;          ///< upper bound of any all-gather on these NVLinks; 0: they do not connect all GPUs
};

/// NVLink rings; if there are none, one ring over the nearest paths.
Search search(const Topology& topology);

}  // namespace tutti::topology
