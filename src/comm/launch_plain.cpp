// No launcher: whoever started this rank set tutti's own variables.
#include "comm/launch_variables.h"

namespace tutti::launchers {

Found plain(const Environment& environment) {
  const Variables variables(environment);
  auto launch = variables.rank_and_ranks("tutti", "TUTTI_RANK", "TUTTI_NRANKS");
  if (!launch || !*launch) return launch;
  // Whatever started the ranks may tell jobs apart.
  for (const char* job : {"TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID"})
    if (const auto value = variables.text(job)) (*launch)->job += *value + "/";
  return launch;
}

}  // namespace tutti::launchers
