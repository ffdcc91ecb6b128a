// Slurm's srun: SLURM_* in a step, and PMI-2 on a descriptor with --mpi=pmi2.
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "launch/launch_variables.h"
#include "launch/slurm_lists.h"

namespace tutti::launchers {
namespace {

/// A batch script, an interactive shell and the like have a step number too, but are not a step of ranks.
bool in_step(const Variables& variables) {
  constexpr std::uint64_t first_special = 0xffff'fff0;
  const auto step = variables.text("SLURM_STEP_ID");
  if (!step || !variables.has("SLURM_PROCID")) return false;
  std::uint64_t number = first_special;
  std::from_chars(step->data(), step->data() + step->size(), number);
  return number < first_special;
}

Result<void> read_local(const Variables& variables, LaunchInfo& launch) {
  auto node = TUTTI_TRY(variables.number("SLURM_NODEID"));
  for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
    const auto tasks = variables.text(name);
    if (!tasks || !node) continue;
    auto count = slurm_tasks_on_node(*tasks, *node);
    if (!count) return std::move(count).error().during(name);
    launch.local_ranks = *count;
    break;
  }
  return variables.local(launch, "SLURM_LOCALID");
}

/// Without a space: rank 0 is on the first node of the step, at a port derived from the step's number. The port is
/// below those that systems assign to connections, and a secret is required to connect.
Result<void> read_root(const Variables& variables, LaunchInfo& launch) {
  constexpr unsigned first_port = 20'000, ports = 10'000;
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    const auto nodes = variables.text(name);
    if (!nodes) continue;
    auto first = slurm_first_node(*nodes);
    if (!first) return std::move(first).error().during(name);
    unsigned port = 0;
    for (const char c : launch.job) port = (port * 31 + static_cast<unsigned char>(c)) % ports;
    launch.root = SocketAddress{.host = *first, .port = static_cast<std::uint16_t>(first_port + port)};
    return {};
  }
  return {};
}

}  // namespace

Found slurm(const Environment& environment) {
  const Variables variables(environment);
  if (!in_step(variables)) return std::optional<LaunchInfo>();
  const char* ranks = "SLURM_NTASKS";  // in a step it is the step's, but a script may have changed it
  if (variables.has("SLURM_STEP_NUM_TASKS")) ranks = "SLURM_STEP_NUM_TASKS";
  auto launch = variables.rank_and_ranks("Slurm", "SLURM_PROCID", ranks);
  if (!launch || !*launch) return launch;
  LaunchInfo& found = **launch;
  found.job = fmt::format("{}.{}", variables.text("SLURM_JOB_ID").value_or(""), *variables.text("SLURM_STEP_ID"));
  TUTTI_TRY(read_local(variables, found));
  TUTTI_TRY(read_root(variables, found));
  auto fd = TUTTI_TRY(variables.number("PMI_FD"));
  if (const auto job = variables.text("PMI_JOBID"); job && fd && *fd >= 0) {
    found.space = SpaceKind::pmi2;
    found.pmi_fd = *fd;
    found.pmi_job = *job;
  }
  return launch;
}

}  // namespace tutti::launchers
