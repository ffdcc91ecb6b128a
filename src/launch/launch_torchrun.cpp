// torchrun, and launchers that set the same variables: PyTorchJob on Kubernetes, accelerate, Lightning.
#include <fmt/format.h>

#include "launch/launch_variables.h"

namespace tutti::launchers {

Found torchrun(const Environment& environment) {
  const Variables variables(environment);
  auto launch = variables.rank_and_ranks("torchrun", "RANK", "WORLD_SIZE");
  if (!launch || !*launch) return launch;
  TUTTI_TRY(variables.local(**launch, "LOCAL_RANK", "LOCAL_WORLD_SIZE"));
  const bool host = variables.has("MASTER_ADDR");
  if (host != variables.has("MASTER_PORT"))
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("{} is set, but {} is not", host ? "MASTER_ADDR" : "MASTER_PORT",
                                     host ? "MASTER_PORT" : "MASTER_ADDR")};
  for (const char* job : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"})
    if (const auto value = variables.text(job)) (*launch)->job += *value + "/";
  return launch;
}

}  // namespace tutti::launchers
