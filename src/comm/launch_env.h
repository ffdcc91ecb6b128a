// What a launcher told this rank through the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "comm/process.h"
#include "comm/unique_id.h"

namespace tutti {

struct LaunchInfo {
  int rank = 0;
  int ranks = 1;
  std::optional<SocketAddress> root;  ///< where rank 0 is to listen, if known
  std::string job;                    ///< tells jobs of one user on one host apart
  std::string launcher;               ///< for messages: "torchrun"
};

using Environment = std::function<std::optional<std::string>(const char* name)>;

/// Believed in this order: TUTTI_RANK and TUTTI_NRANKS; torchrun's RANK and WORLD_SIZE; Open MPI's OMPI_COMM_WORLD_*.
/// Errors: invalid_usage (nothing found: what was looked for), invalid_argument (a value that is no number, a rank out
/// of range).
Result<LaunchInfo> read_launch(const Environment& environment);

/// The id all ranks of this job share: from address and TUTTI_COMM_SECRET(_FILE), or else from rank 0 over an abstract
/// unix socket of this host, whose other end must have our uid. `nth` counts the communicators made this way. Waits at
/// most the init limit. Errors: timeout, system, invalid_usage (several hosts and no secret).
Result<UniqueId> agree_on_id(Process& process, const LaunchInfo& launch, int nth);

}  // namespace tutti
