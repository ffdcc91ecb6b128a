// A recorded machine, whatever wrote it down.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "topology/graph/topology.h"

namespace tutti::topology {

/// NCCL's or RCCL's XML, hwloc's XML, or a matrix of nvidia-smi: told by what is in it. `origin` is its name.
/// Errors: invalid_argument, "machine.xml: line 3: …".
Result<Topology> read(std::string_view text, const std::string& origin);

/// The same of a file, or of a synthetic machine of hwloc after "synthetic:", as in "synthetic:pack:2 numa:1 core:4".
/// Errors: those of read; system.
Result<Topology> read_machine(const std::string& path);

}  // namespace tutti::topology
