// Rings of a host's ranks in a file, in the format of NCCL's channels.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace tutti {

/// The channels of the first ring in the file, each once: which of a host's ranks, counted from 0, follow each other.
/// NCCL names GPUs; the n-th rank of a host counts as its GPU n. Errors: system (cannot be read), invalid_argument (no
/// such file, no ring, a channel that does not name every number from 0 on once, channels of different lengths).
Result<std::vector<std::vector<int>>> read_rings(const std::string& path);

/// Errors: system.
Result<void> write_rings(const std::string& path, const std::vector<std::vector<int>>& rings);

}  // namespace tutti
