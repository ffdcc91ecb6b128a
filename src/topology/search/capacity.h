// The number of links from each GPU to each other, and the bounds that they impose on every schedule.
#pragma once

#include <vector>

#include "topology/graph/topology.h"

namespace tutti::topology {

/// capacity[a][b]: number of links from node a to node b, in one direction. Nodes from `gpus` on are switches.
struct Capacity {
  int gpus = 0;
  std::vector<std::vector<long long>> links;
  std::vector<long long> parts = {};  ///< how many GPUs share the links of each of `gpus`; empty: each has its own
  long long parts_at(std::size_t gpu) const { return parts.empty() ? 1 : parts[gpu]; }
  int size() const { return static_cast<int>(links.size()); }
};

/// Direct links by index of topology.gpus(), as many as exist in both directions. The switches of each
/// fabric are one node after the GPUs.
Capacity capacity_of(const Topology& topology);

/// A flow from `from` to `to` of at most `enough`; `reached`, if given, receives the nodes on the near side of the
/// least cut.
long long max_flow(std::vector<std::vector<long long>> capacity, int from, int to, long long enough,
                   std::vector<bool>* reached = nullptr);

/// The least number of links into and out of any set of GPUs: no more rings than this can pass all GPUs.
long long least_cut(const Capacity& capacity);

struct Ratio {
  long long numerator = 0, denominator = 1;
  double value() const { return static_cast<double>(numerator) / static_cast<double>(denominator); }
  bool operator==(const Ratio&) const = default;
};
/// The least ratio, over all proper sets of GPUs, of links that leave the set to GPUs in it: an all-gather can send
/// each GPU's data at no more than this number of links' rate. Packing trees reaches it (Zhao and others, ForestColl,
/// 2024).
Ratio gather_bound(const Capacity& capacity);

}  // namespace tutti::topology
