// The variables that each launcher sets for a rank: one function, in its own file, per launcher.
#pragma once

#include <optional>

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

}  // namespace tutti::launchers
