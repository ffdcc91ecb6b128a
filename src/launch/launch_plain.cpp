// No launcher: tutti's own variables are set.
#include "launch/launch_variables.h"

namespace tutti::launchers {

Found plain(const Environment& environment) {
  const Variables variables(environment);
  auto launch = variables.rank_and_ranks("tutti", "TUTTI_RANK", "TUTTI_NRANKS");
  if (!launch || !*launch) return launch;
  // The program that started the ranks may have given the job a name. A Slurm job outside of its steps is not used as a
  // name: a batch script may start several jobs.
  for (const char* job : {"TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})
    if (const auto value = variables.text(job); value && *value != "none") (*launch)->job += *value + "/";
  const auto slurm_job = variables.text("SLURM_JOB_ID");
  const auto slurm_step = variables.text("SLURM_STEP_ID");
  if (slurm_job && slurm_step) (*launch)->job += *slurm_job + "." + *slurm_step + "/";
  return launch;
}

}  // namespace tutti::launchers
