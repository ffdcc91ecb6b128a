// The variables that each launcher sets for a rank, one function per launcher, and which of them are believed.
#include "launch/launch_env.h"

#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "base/printable.h"
#include "launch/slurm_lists.h"

namespace tutti {
namespace {

/// Nothing: this launcher did not start this process. Errors: invalid_usage (incomplete; names what is missing),
/// invalid_argument (names the invalid value).
using Found = Result<std::optional<LaunchInfo>>;

/// Makes launchers' values, which are foreign text, fit to show.
std::string shown(const std::string& text) {
  return printable(text, 200);
}

Result<int> to_number(const std::string& name, const std::string& text) {
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size())
    return invalid_argument(fmt::format("{}=\"{}\" is not a number", name, shown(text)));
  return value;
}

/// Reads a launcher's variables: checks that numbers fit together, with errors that name those that do not.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  /// Nothing if it is not set, or empty.
  std::optional<std::string> text(const char* name) const {
    auto value = environment_(name);
    if (value && value->empty()) return std::nullopt;
    return value;
  }
  bool has(const char* name) const { return text(name).has_value(); }
  /// Errors: invalid_argument (not a whole number that fits an int).
  Result<std::optional<int>> number(const char* name) const {
    const auto value = text(name);
    if (!value) return std::optional<int>();
    return std::optional<int>(TUTTI_TRY(to_number(name, *value)));
  }

  /// A launcher's rank and number of ranks; nothing if neither is set. Errors: invalid_usage (one of them is missing),
  /// invalid_argument.
  Found rank_and_ranks(const char* launcher, const char* rank, const char* ranks) const {
    auto r = TUTTI_TRY(number(rank));
    auto n = TUTTI_TRY(number(ranks));
    if (!r && !n) return std::optional<LaunchInfo>();
    if (!r || !n) return invalid_usage(fmt::format("{} is set, but {} is not", r ? rank : ranks, r ? ranks : rank));
    if (*n < 1) return invalid_argument(fmt::format("{}={}: a job has at least one rank", ranks, *n));
    if (*r < 0 || *r >= *n)
      return invalid_argument(
          fmt::format("{}={} is not one of the ranks 0 to {} that {}={} gives", rank, *r, *n - 1, ranks, *n));
    LaunchInfo launch;
    launch.rank = *r;
    launch.ranks = *n;
    launch.launcher = launcher;
    return std::optional(std::move(launch));
  }
  /// Local rank and number of local ranks, as far as they are set. Errors: invalid_argument (they do not fit together).
  Result<void> local(LaunchInfo& launch, const char* local_rank, const char* local_ranks) const {
    const auto ranks = TUTTI_TRY(number(local_ranks));
    if (ranks && (*ranks < 1 || *ranks > launch.ranks))
      return invalid_argument(fmt::format("{}={} does not fit {} ranks", local_ranks, *ranks, launch.ranks));
    launch.local_ranks = ranks.value_or(-1);
    return local(launch, local_rank);
  }
  Result<void> local(LaunchInfo& launch, const char* local_rank) const {
    auto rank = TUTTI_TRY(number(local_rank));
    if (rank && (*rank < 0 || *rank >= (launch.local_ranks > 0 ? launch.local_ranks : launch.ranks)))
      return invalid_argument(fmt::format("{}={} is not one of {} local ranks", local_rank, *rank,
                                          launch.local_ranks > 0 ? launch.local_ranks : launch.ranks));
    launch.local_rank = rank.value_or(-1);
    return {};
  }

 private:
  const Environment& environment_;
};

/// Parses host:port or [v6]:port. Errors: invalid_argument, which contains `name`.
Result<SocketAddress> read_address(const std::string& name, const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return invalid_argument(fmt::format("{}=\"{}\" is not host:port", name, shown(text)));
  const int port = TUTTI_TRY(to_number(name, text.substr(colon + 1)));
  if (port < 1 || port > 65535) return invalid_argument(fmt::format("{}: port {} is not in 1 to 65535", name, port));
  std::string host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) return invalid_argument(fmt::format("{}=\"{}\" is not host:port", name, shown(text)));
  return SocketAddress{.host = host == "localhost" ? "127.0.0.1" : host, .port = static_cast<std::uint16_t>(port)};
}

/// No launcher: tutti's own variables are set.
Found plain(const Variables& variables) {
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

/// torchrun, and launchers that set the same variables: PyTorchJob on Kubernetes, accelerate, Lightning.
Found torchrun(const Variables& variables) {
  auto launch = variables.rank_and_ranks("torchrun", "RANK", "WORLD_SIZE");
  if (!launch || !*launch) return launch;
  TUTTI_TRY(variables.local(**launch, "LOCAL_RANK", "LOCAL_WORLD_SIZE"));
  const bool host = variables.has("MASTER_ADDR");
  if (host != variables.has("MASTER_PORT"))
    return invalid_usage(fmt::format("{} is set, but {} is not", host ? "MASTER_ADDR" : "MASTER_PORT",
                                     host ? "MASTER_PORT" : "MASTER_ADDR"));
  for (const char* job : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"})
    if (const auto value = variables.text(job)) (*launch)->job += *value + "/";
  return launch;
}

/// Open MPI's mpirun, for when its PMIx server cannot be used.
Found open_mpi(const Variables& variables) {
  auto launch = variables.rank_and_ranks("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  if (!launch || !*launch) return launch;
  TUTTI_TRY(variables.local(**launch, "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"));
  for (const char* job : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})
    if (const auto value = variables.text(job)) (*launch)->job += *value + "/";
  return launch;
}

/// MPICH's mpiexec.hydra and its relatives (Intel MPI, MVAPICH): PMI-1 on a descriptor that the rank inherits.
Found hydra(const Variables& variables) {
  auto launch = variables.rank_and_ranks("hydra", "PMI_RANK", "PMI_SIZE");
  if (!launch || !*launch) return launch;
  // Slurm's PMI-2 sets these variables too, but never hydra's local ones.
  if (!variables.has("MPI_LOCALNRANKS") && variables.has("SLURM_PROCID") && variables.has("PMI_JOBID"))
    return std::optional<LaunchInfo>();
  TUTTI_TRY(variables.local(**launch, "MPI_LOCALRANKID", "MPI_LOCALNRANKS"));
  auto fd = TUTTI_TRY(variables.number("PMI_FD"));
  if (fd && *fd < 0) return invalid_argument("PMI_FD=" + std::to_string(*fd) + " is not a descriptor");
  if (fd) {
    (*launch)->space = SpaceKind::pmi1;
    (*launch)->pmi_fd = *fd;
  }
  for (const char* job : {"PMI_PORT", "PMI_JOBID"})
    if (const auto value = variables.text(job)) (*launch)->job += *value + "/";
  return launch;
}

/// A batch script, an interactive shell and the like have a step number too, but are not a step of ranks.
bool in_step(const Variables& variables) {
  constexpr std::uint64_t first_special = 0xffff'fff0;
  const auto step = variables.text("SLURM_STEP_ID");
  if (!step || !variables.has("SLURM_PROCID")) return false;
  std::uint64_t number = first_special;
  std::from_chars(step->data(), step->data() + step->size(), number);
  return number < first_special;
}

Result<void> read_slurm_local(const Variables& variables, LaunchInfo& launch) {
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
Result<void> read_slurm_root(const Variables& variables, LaunchInfo& launch) {
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

/// Slurm's srun: SLURM_* in a step, and PMI-2 on a descriptor with --mpi=pmi2.
Found slurm(const Variables& variables) {
  if (!in_step(variables)) return std::optional<LaunchInfo>();
  const char* ranks = "SLURM_NTASKS";  // in a step it is the step's, but a script may have changed it
  if (variables.has("SLURM_STEP_NUM_TASKS")) ranks = "SLURM_STEP_NUM_TASKS";
  auto launch = variables.rank_and_ranks("Slurm", "SLURM_PROCID", ranks);
  if (!launch || !*launch) return launch;
  LaunchInfo& found = **launch;
  found.job = fmt::format("{}.{}", variables.text("SLURM_JOB_ID").value_or(""), *variables.text("SLURM_STEP_ID"));
  TUTTI_TRY(read_slurm_local(variables, found));
  TUTTI_TRY(read_slurm_root(variables, found));
  auto fd = TUTTI_TRY(variables.number("PMI_FD"));
  if (const auto job = variables.text("PMI_JOBID"); job && fd && *fd >= 0) {
    found.space = SpaceKind::pmi2;
    found.pmi_fd = *fd;
    found.pmi_job = *job;
  }
  return launch;
}

/// Any launcher that runs a PMIx server next to its ranks: Open MPI's mpirun, prterun, srun --mpi=pmix.
Found pmix(const Variables& variables) {
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
  for (const auto& other : {open_mpi(variables), slurm(variables)}) {
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

struct Launcher {
  const char* name;
  Found (*read)(const Variables&);
};

constexpr Launcher believed_in_this_order[] = {
    {"TUTTI_RANK", plain},  {"torchrun", torchrun}, {"PMIx", pmix},
    {"Open MPI", open_mpi}, {"hydra", hydra},       {"Slurm", slurm},
};

/// An address set by the user takes precedence over the launcher's.
Result<void> read_root(const Variables& variables, LaunchInfo& launch) {
  if (const auto id = variables.text("TUTTI_COMM_ID")) {
    launch.root = TUTTI_TRY(read_address("TUTTI_COMM_ID", *id));
    launch.root_from_user = true;
    return {};
  }
  const auto host = variables.text("MASTER_ADDR");
  const auto port = variables.text("MASTER_PORT");
  if (!host || !port) return {};
  auto master = TUTTI_TRY(read_address("MASTER_ADDR:MASTER_PORT", *host + ":" + *port));
  if (master.port == 65535) return invalid_argument("MASTER_PORT is 65535: the port after it is needed");
  ++master.port;  // MASTER_PORT itself is used by the launcher's own store
  launch.root = std::move(master);
  return {};
}

/// Gives the job the same name on every rank with the same meeting point.
void name_job(const Variables& variables, LaunchInfo& launch) {
  if (launch.root) launch.job += fmt::format("{}:{}", launch.root->host, launch.root->port);
  if (const auto given = variables.text("TUTTI_JOB_ID")) launch.job += "/" + *given;
}

}  // namespace

Result<LaunchInfo> read_launch(const Environment& environment) {
  const Variables variables(environment);
  std::optional<LaunchInfo> believed;
  std::optional<Error> half;
  std::vector<std::string> not_used;
  for (const auto& launcher : believed_in_this_order) {
    auto found = launcher.read(variables);
    if (!found && (found.error().code != Code::invalid_usage || launcher.read == plain) && !believed)
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
    TUTTI_TRY(read_root(variables, *believed));
    name_job(variables, *believed);
    believed->not_used = std::move(not_used);
    return *std::move(believed);
  }
  if (half) return *std::move(half);
  return invalid_usage(
      "no rank in the environment: set TUTTI_RANK and TUTTI_NRANKS (and TUTTI_COMM_ID=host:port), or "
      "start under torchrun, mpirun, mpiexec or srun");
}

}  // namespace tutti
