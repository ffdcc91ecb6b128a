// No launcher: whoever started this rank set tutti's own variables.
#include "launch/launch_variables.h"

namespace tutti::launchers {

Found plain(const Environment& environment) {
  const Variables variables(environment);
  auto launch = variables.rank_and_ranks("tutti", "TUTTI_RANK", "TUTTI_NRANKS");
  if (!launch || !*launch) return launch;
  // Whatever started the ranks may tell jobs apart. A job of Slurm is not one of ours outside of its steps: a batch
  // script may start several.
  for (const char* job : {"TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})
    if (const auto value = variables.text(job); value && *value != "none") (*launch)->job += *value + "/";
  const auto slurm_job = variables.text("SLURM_JOB_ID");
  const auto slurm_step = variables.text("SLURM_STEP_ID");
  if (slurm_job && slurm_step) (*launch)->job += *slurm_job + "." + *slurm_step + "/";
  return launch;
}

}  // namespace tutti::launchers
