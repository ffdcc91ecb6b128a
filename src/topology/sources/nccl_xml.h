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

struct GraphChannel {
  std::vector<int> gpus;  ///< in the order of the channel
  int net_in = -1, net_out = -1;
  bool operator==(const GraphChannel&) const = default;
};
/// One <graph> of a graph file.
struct Graph {
  int id = 0, pattern = 0;  ///< 4 ring; 1 balanced, 2 split, 3 plain tree; 5 NVLS; 6 collnet direct
  int cross_nic = 0;
  bool same_channels = false;
  double intra_gbps = 0, inter_gbps = 0;  ///< of one channel
  std::string intra_kind, inter_kind;     ///< "NVL"
  std::vector<GraphChannel> channels;
};

/// Errors: invalid_argument with the line.
Result<std::vector<Graph>> read_graphs(std::string_view text);
std::string write_graphs(std::span<const Graph> graphs);

}  // namespace tutti::topology
