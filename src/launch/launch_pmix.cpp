// Any launcher that runs a PMIx server next to its ranks: Open MPI's mpirun, prterun, srun --mpi=pmix.
#include "launch/launch_variables.h"

namespace tutti::launchers {

Found pmix(const Environment& environment) {
  const Variables variables(environment);
  bool served = false;
  for (const char* uri : {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI21",
                          "PMIX_SERVER_URI2", "PMIX_SERVER_URI"})
    served = served || variables.has(uri);
  if (!served || !variables.has("PMIX_NAMESPACE") || !variables.has("PMIX_RANK")) return std::optional<LaunchInfo>();

  LaunchInfo launch;
  launch.rank = *TUTTI_TRY(variables.number("PMIX_RANK"));
  launch.ranks = 0;
  launch.launcher = "PMIx";
  launch.space = SpaceKind::pmix;
  launch.job = *variables.text("PMIX_NAMESPACE");
  // The launcher's own variables say what to use if libpmix is not installed.
  for (const auto& other : {open_mpi(environment), slurm(environment)}) {
    if (!other || !*other || (*other)->rank != launch.rank) continue;
    launch.ranks = (*other)->ranks;
    launch.local_rank = (*other)->local_rank;
    launch.local_ranks = (*other)->local_ranks;
    launch.launcher = (*other)->launcher;
    launch.root = (*other)->root;
    break;
  }
  return std::optional(std::move(launch));
}

}  // namespace tutti::launchers
