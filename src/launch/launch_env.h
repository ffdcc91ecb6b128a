// What a launcher told this rank through the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/system.h"

namespace tutti {

/// Where the ranks of a launcher's job can leave words for one another before they know each other.
enum class SpaceKind { none, pmix, pmi1, pmi2 };

struct LaunchInfo {
  int rank = 0;
  int ranks = 1;                      ///< 0: the space knows (PMIx)
  int local_rank = -1;                ///< among the ranks of this host; -1: not told
  int local_ranks = -1;               ///< on this host; -1: not told
  std::optional<SocketAddress> root;  ///< where rank 0 is to listen, if known; the host may be a name
  bool root_from_user = false;        ///< by TUTTI_COMM_ID: comes before a space
  std::string job;                    ///< tells jobs of one user on one host apart; empty: their processes have to
  std::string launcher;               ///< for messages: "torchrun"
  SpaceKind space = SpaceKind::none;
  int pmi_fd = -1;                    ///< of PMI-1 and PMI-2
  std::string pmi_job;                ///< of PMI-2
  std::vector<std::string> not_used;  ///< what other launchers left, and why it does not count; for the log

  bool job_named() const { return !job.empty(); }
};

using Environment = std::function<std::optional<std::string>(const char* name)>;

/// Believed in this order: TUTTI_RANK and TUTTI_NRANKS; torchrun; PMIx; Open MPI; MPICH's hydra; a step of Slurm. What
/// each looks at is in launchers.h. A launcher of which half is set does not count if another one is complete.
/// Errors: invalid_usage (nothing found: what was looked for; half of one: what is missing), invalid_argument (a value
/// that is no number, a rank out of range).
Result<LaunchInfo> read_launch(const Environment& environment);

}  // namespace tutti
