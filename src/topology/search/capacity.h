// How many links go from each GPU to each other, and what no schedule can beat on them.
#pragma once

#include <vector>

#include "topology/graph/topology.h"

namespace tutti::topology {

/// capacity[a][b]: links from node a to node b, one direction. Nodes from `gpus` on are switches.
struct Capacity {
  int gpus = 0;
  std::vector<std::vector<long long>> links;
  std::vector<long long> parts = {};  ///< how many GPUs share the links of each of `gpus`; empty: it has its own
  long long parts_at(std::size_t gpu) const { return parts.empty() ? 1 : parts[gpu]; }
  int size() const { return static_cast<int>(links.size()); }
};

/// Direct links by place in topology.gpus(), in the number that both directions have; all switches are one node behind
/// them, where there are any.
Capacity capacity_of(const Topology& topology);

/// A flow from `from` to `to` of at most `enough`; `reached`, where given, says which nodes lie on the near side of the
/// least cut.
long long max_flow(std::vector<std::vector<long long>> capacity, int from, int to, long long enough,
                   std::vector<bool>* reached = nullptr);

/// Links into and out of the set of GPUs that has fewest: no more rings than this pass all GPUs.
long long least_cut(const Capacity& capacity);

struct Ratio {
  long long numerator = 0, denominator = 1;
  double value() const { return static_cast<double>(numerator) / static_cast<double>(denominator); }
  bool operator==(const Ratio&) const = default;
};
/// Least over all sets of GPUs, but not all, of links that leave it by GPUs in it: in an all-gather each GPU's data can
/// be sent at no more than so many links' rate. Reached by packing trees (Zhao and others, ForestColl, 2024).
Ratio gather_bound(const Capacity& capacity);

}  // namespace tutti::topology
