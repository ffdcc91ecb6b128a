#include "launch/launch_env.h"

#include <fmt/format.h>

#include "launch/launchers.h"

namespace tutti {
namespace {

using launchers::Found;
using launchers::Variables;

struct Launcher {
  const char* name;
  Found (*read)(const Environment&);
};

constexpr Launcher believed_in_this_order[] = {
    {"TUTTI_RANK", launchers::plain},  {"torchrun", launchers::torchrun}, {"PMIx", launchers::pmix},
    {"Open MPI", launchers::open_mpi}, {"hydra", launchers::hydra},       {"Slurm", launchers::slurm},
};

/// An address set by the user takes precedence over the launcher's.
Result<void> read_root(const Environment& environment, LaunchInfo& launch) {
  const Variables variables(environment);
  if (const auto id = variables.text("TUTTI_COMM_ID")) {
    launch.root = TUTTI_TRY(launchers::read_address("TUTTI_COMM_ID", *id));
    launch.root_from_user = true;
    return {};
  }
  const auto host = variables.text("MASTER_ADDR");
  const auto port = variables.text("MASTER_PORT");
  if (!host || !port) return {};
  auto master = TUTTI_TRY(launchers::read_address("MASTER_ADDR:MASTER_PORT", *host + ":" + *port));
  if (master.port == 65535)
    return Error{.code = Code::invalid_argument, .what = "MASTER_PORT is 65535: the port after it is needed"};
  ++master.port;  // MASTER_PORT itself is used by the launcher's own store
  launch.root = std::move(master);
  return {};
}

/// Gives the job the same name on every rank with the same meeting point.
void name_job(const Environment& environment, LaunchInfo& launch) {
  if (launch.root) launch.job += fmt::format("{}:{}", launch.root->host, launch.root->port);
  if (const auto given = Variables(environment).text("TUTTI_JOB_ID")) launch.job += "/" + *given;
}

}  // namespace

Result<LaunchInfo> read_launch(const Environment& environment) {
  std::optional<LaunchInfo> believed;
  std::optional<Error> half;
  std::vector<std::string> not_used;
  for (const auto& launcher : believed_in_this_order) {
    auto found = launcher.read(environment);
    if (!found && (found.error().code != Code::invalid_usage || launcher.read == launchers::plain) && !believed)
      return std::move(found).error();
    if (!found) {
      not_used.push_back(fmt::format("{}: {}", launcher.name, found.error().what));
      if (!half) half = std::move(found).error();
    } else if (*found && !believed) {
      believed = **std::move(found);
    } else if (*found && ((*found)->rank != believed->rank || (*found)->ranks != believed->ranks)) {
      not_used.push_back(fmt::format("{}: rank {} of {}", launcher.name, (*found)->rank, (*found)->ranks));
    }
  }
  if (believed) {
    TUTTI_TRY(read_root(environment, *believed));
    name_job(environment, *believed);
    believed->not_used = std::move(not_used);
    return *std::move(believed);
  }
  if (half) return *std::move(half);
  return Error{.code = Code::invalid_usage,
               .what =
                   "no rank in the environment: set TUTTI_RANK and TUTTI_NRANKS (and TUTTI_COMM_ID=host:port), or "
                   "start under torchrun, mpirun, mpiexec or srun"};
}

}  // namespace tutti
