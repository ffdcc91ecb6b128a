// The latencies that NCCL 2.30 assumes of its algorithms on H100 (src/graph/tuning.cc), in microseconds.
#pragma once

#include <algorithm>
#include <bit>

namespace tutti::testing {

/// nodes × per_node GPUs. Formulas as in tuning.cc, with its constants for NVLink of that generation and for networks.
/// Only a yardstick: it is no simulation, and holds for messages without bytes.
struct NcclCluster {
  int nodes;
  int per_node;
  int ranks() const { return nodes * per_node; }
};

struct NcclConstants {
  double ring_base, ring_inside, ring_across;
  double tree_base, tree_inside, tree_across;
  double overhead;  // of the network, the least a hop of a ring takes where there is one
};
inline constexpr NcclConstants nccl_ll{6.6, 0.6, 2.7, 6.8, 0.6, 5.0, 1.0};
inline constexpr NcclConstants nccl_simple{8.4, 3.4, 14.0, 8.4, 4.0, 14.0, 3.0};

/// All-reduce around a ring: 2 (n-1) hops, of which 2 (N-1) leave a node.
inline double nccl_ring_us(const NcclCluster& c, const NcclConstants& k) {
  const double hops = 2.0 * (c.ranks() - 1), across = 2.0 * (c.nodes - 1);
  const double inside = c.nodes > 1 ? std::max(k.ring_inside, k.overhead) : k.ring_inside;
  return k.ring_base + (hops - across) * inside + across * k.ring_across;
}

/// All-reduce up and down a tree of nodes, which are chains inside.
inline double nccl_tree_us(const NcclCluster& c, const NcclConstants& k) {
  const double height = std::bit_width(static_cast<unsigned>(c.nodes)) - 1;
  return k.tree_base + 2 * ((c.per_node - 1) * k.tree_inside + height * k.tree_across);
}

/// All-gather by PAT, one GPU in each node, and around a ring of them; both Simple.
inline double nccl_pat_us(int nodes) {
  const double height = std::bit_width(static_cast<unsigned>(nodes)) - 1;
  return 8 + height * nccl_simple.ring_across / 3.5 + 2.8 * nodes;
}
inline double nccl_ring_all_gather_us(int nodes) {
  return nccl_simple.ring_base + (nodes - 1) * nccl_simple.ring_across;
}

}  // namespace tutti::testing
