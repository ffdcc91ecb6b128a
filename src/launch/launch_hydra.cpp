// MPICH's mpiexec.hydra and its relatives (Intel MPI, MVAPICH): PMI-1 on a descriptor that the rank inherits.
#include "launch/launch_variables.h"

namespace tutti::launchers {

Found hydra(const Environment& environment) {
  const Variables variables(environment);
  auto launch = variables.rank_and_ranks("hydra", "PMI_RANK", "PMI_SIZE");
  if (!launch || !*launch) return launch;
  // Slurm's PMI-2 sets these variables too, but never hydra's local ones.
  if (!variables.has("MPI_LOCALNRANKS") && variables.has("SLURM_PROCID") && variables.has("PMI_JOBID"))
    return std::optional<LaunchInfo>();
  TUTTI_TRY(variables.local(**launch, "MPI_LOCALRANKID", "MPI_LOCALNRANKS"));
  auto fd = TUTTI_TRY(variables.number("PMI_FD"));
  if (fd && *fd < 0)
    return Error{.code = Code::invalid_argument, .what = "PMI_FD=" + std::to_string(*fd) + " is not a descriptor"};
  if (fd) {
    (*launch)->space = SpaceKind::pmi1;
    (*launch)->pmi_fd = *fd;
  }
  for (const char* job : {"PMI_PORT", "PMI_JOBID"})
    if (const auto value = variables.text(job)) (*launch)->job += *value + "/";
  return launch;
}

}  // namespace tutti::launchers
