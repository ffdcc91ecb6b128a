// The order of a host's ranks in a file, in the format of NCCL's channels.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace tutti {

/// The first channel of the first ring in the file: which of a host's ranks, counted from 0, follow each other. NCCL
/// names GPUs; the n-th rank of a host counts as its GPU n. Errors: system (cannot be read), invalid_argument (no such
/// file, no ring, not every number from 0 on once).
Result<std::vector<int>> read_ring(const std::string& path);

/// Errors: system.
Result<void> write_ring(const std::string& path, const std::vector<int>& ring);

}  // namespace tutti
