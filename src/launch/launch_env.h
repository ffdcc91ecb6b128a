// The information about this rank that a launcher passes in the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/system.h"

namespace tutti {

/// The launcher's key-value space, by which the ranks of a job exchange text before they are connected.
enum class SpaceKind { none, pmix, pmi1, pmi2 };

struct LaunchInfo {
  int rank = 0;
  int ranks = 1;                      ///< 0: the space knows (PMIx)
  int local_rank = -1;                ///< among the ranks of this host; -1: unknown
  int local_ranks = -1;               ///< on this host; -1: unknown
  std::optional<SocketAddress> root;  ///< where rank 0 is to listen, if known; the host may be a name
  bool root_from_user = false;        ///< by TUTTI_COMM_ID: takes precedence over a space
  /// distinguishes jobs of one user on one host; empty: their processes are compared instead
  std::string job;
  std::string launcher;  ///< for messages: "torchrun"
  SpaceKind space = SpaceKind::none;
  int pmi_fd = -1;                    ///< of PMI-1 and PMI-2
  std::string pmi_job;                ///< of PMI-2
  std::vector<std::string> not_used;  ///< variables of other launchers, and why they are not used; for the log

  bool job_named() const { return !job.empty(); }
};

using Environment = std::function<std::optional<std::string>(const char* name)>;

/// Precedence: TUTTI_RANK and TUTTI_NRANKS; torchrun; PMIx; Open MPI; MPICH's hydra; a step of Slurm. The variables of
/// each are in launch_env.cpp. An incomplete launcher is ignored if another one is complete. Errors: invalid_usage (no
/// launcher: names what was looked for; an incomplete one: names what is missing), invalid_argument (a value that is
/// not a number, a rank out of range).
Result<LaunchInfo> read_launch(const Environment& environment);

}  // namespace tutti
