// The variables that each launcher sets for a rank: a function for each launcher, and what they read the variables by.
#pragma once

#include <optional>
#include <string>

#include "launch/launch_env.h"

namespace tutti::launchers {

/// Nothing: this launcher did not start this process. Errors: invalid_usage (incomplete; names what is missing),
/// invalid_argument (names the invalid value).
using Found = Result<std::optional<LaunchInfo>>;

Found plain(const Environment& environment);     ///< TUTTI_RANK, TUTTI_NRANKS
Found torchrun(const Environment& environment);  ///< RANK, WORLD_SIZE, LOCAL_*, MASTER_ADDR, MASTER_PORT
Found pmix(const Environment& environment);      ///< PMIX_RANK, PMIX_NAMESPACE, PMIX_SERVER_URI*
Found open_mpi(const Environment& environment);  ///< OMPI_COMM_WORLD_*
Found hydra(const Environment& environment);     ///< PMI_RANK, PMI_SIZE, PMI_FD, MPI_LOCAL*
Found slurm(const Environment& environment);     ///< SLURM_PROCID and so on, in a step; PMI_FD

/// Checks that numbers fit together, with errors that name those that do not.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  /// Nothing if it is not set, or empty.
  std::optional<std::string> text(const char* name) const;
  bool has(const char* name) const { return text(name).has_value(); }
  /// Errors: invalid_argument (not a whole number that fits an int).
  Result<std::optional<int>> number(const char* name) const;

  /// A launcher's rank and number of ranks; nothing if neither is set. Errors: invalid_usage (one of them is missing),
  /// invalid_argument.
  Found rank_and_ranks(const char* launcher, const char* rank, const char* ranks) const;
  /// Local rank and number of local ranks, as far as they are set. Errors: invalid_argument (they do not fit together).
  Result<void> local(LaunchInfo& launch, const char* local_rank, const char* local_ranks) const;
  Result<void> local(LaunchInfo& launch, const char* local_rank) const;

 private:
  const Environment& environment_;
};

/// Parses host:port or [v6]:port. Errors: invalid_argument, which contains `name`.
Result<SocketAddress> read_address(const std::string& name, const std::string& text);

}  // namespace tutti::launchers
