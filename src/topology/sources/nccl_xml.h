// Reads and writes machines in the format of NCCL and RCCL (NCCL_TOPO_DUMP_FILE), and their channels
// (NCCL_GRAPH_DUMP_FILE).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "topology/graph/topology.h"

namespace tutti::topology {

/// Reads <system>, or a single <pci> or <cpu>. Errors: invalid_argument with the line.
Result<Topology> read_nccl(std::string_view text);

/// In NCCL's schema, for NCCL_TOPO_FILE.
std::string write_nccl(const Topology& topology);

/// One <graph> of a graph file, as far as it is used.
struct Graph {
  int pattern = 0;  ///< ring_pattern; 1 balanced, 2 split, 3 plain tree; 5 NVLS; 6 collnet direct
  std::vector<std::vector<int>> channels;  ///< of each its GPUs, in order
};
inline constexpr int ring_pattern = 4;

/// Errors: invalid_argument with the line.
Result<std::vector<Graph>> read_graphs(std::string_view text);
/// A file with one graph, of these rings.
std::string write_rings(std::span<const std::vector<int>> rings);

}  // namespace tutti::topology
