// The machine that a matrix of `nvidia-smi topo -m` describes.
#pragma once

#include <string_view>

#include "base/error.h"
#include "topology/graph/topology.h"

namespace tutti::topology {

/// Whether a line of it begins a matrix.
bool looks_like_smi(std::string_view text);

/// A matrix of paths, of P2P states (`topo -p2p`), or both: with colours, wrapped, cut short, of old drivers. PCI
/// switches, host bridges and NUMA nodes are made so that the same matrix comes out; what no tree can give is kept in
/// `stated`. Of several machines in one text the one with most GPUs is taken, and a note says so.
/// Errors: invalid_argument with the line.
Result<Topology> read_smi(std::string_view text);

}  // namespace tutti::topology
