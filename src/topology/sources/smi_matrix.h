// Derives a machine from a matrix of `nvidia-smi topo -m`.
#pragma once

#include <string_view>

#include "base/error.h"
#include "topology/graph/topology.h"

namespace tutti::topology {

/// Whether a line of the text begins a matrix.
bool looks_like_smi(std::string_view text);

/// A matrix of paths, of P2P states (`topo -p2p`), or both: with colours, wrapped, truncated, from old drivers. PCI
/// switches, host bridges and NUMA nodes are made up so that they give the same matrix; what no tree gives is kept in
/// `stated`. Of several machines in one text, the one with most GPUs is used, and a note says so. Errors:
/// invalid_argument with the line.
Result<Topology> read_smi(std::string_view text);

}  // namespace tutti::topology
