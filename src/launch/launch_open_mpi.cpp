// Open MPI's mpirun, for when its PMIx server cannot be used.
#include "launch/launch_variables.h"

namespace tutti::launchers {

Found open_mpi(const Environment& environment) {
  const Variables variables(environment);
  auto launch = variables.rank_and_ranks("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  if (!launch || !*launch) return launch;
  TUTTI_TRY(variables.local(**launch, "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"));
  for (const char* job : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})
    if (const auto value = variables.text(job)) (*launch)->job += *value + "/";
  return launch;
}

}  // namespace tutti::launchers
