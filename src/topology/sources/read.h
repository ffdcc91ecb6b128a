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

}  // namespace tutti::topology
