// Reads a recorded machine in any supported format.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "topology/graph/topology.h"

namespace tutti::topology {

/// NCCL's or RCCL's XML, hwloc's XML, or a matrix of nvidia-smi, recognised by the content. `origin` is the name for
/// messages. Errors: invalid_argument, "machine.xml: line 3: …".
Result<Topology> read(std::string_view text, const std::string& origin);

/// As read, for a file, or for a synthetic machine of hwloc after "synthetic:", as in "synthetic:pack:2 numa:1 core:4".
/// Errors: those of read; system.
Result<Topology> read_machine(const std::string& path, FileKind kind = FileKind::regular);

/// A machine exported by hwloc, in the formats of hwloc 1, 2 and 3. GPUs are PCI functions of NVIDIA or AMD by class,
/// or functions with an NVML, CUDA or RSMI device: each once, however many devices the system has for it. Links are
/// those of NVLinkBandwidth and XGMIBandwidth; other distances are ignored. Errors: invalid_argument with the line;
/// also for later formats.
Result<Topology> read_hwloc(std::string_view text);

/// What `nvidia-smi topo -m` prints: a matrix of paths, of P2P states (`topo -p2p`), or both: with colours, wrapped,
/// truncated, from old drivers. PCI switches, host bridges and NUMA nodes are made up so that they give the same
/// matrix; what no tree gives is kept in `stated`. Of several machines in one text, the one with most GPUs is used, and
/// a note says so. Errors: invalid_argument with the line.
Result<Topology> read_smi(std::string_view text);

}  // namespace tutti::topology
