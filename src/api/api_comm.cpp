// The C functions that create, split, query and end communicators.
#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "api/api_support.h"
#include "base/build_id.h"
#include "init/join.h"
#include "init/meeting.h"
#include "init/open_root.h"
#include "init/refused_start.h"
#include "init/split.h"
#include "launch/launch_env.h"
#include "submit/ending.h"

namespace tutti::api {
namespace {

/// Sets options.gpu: config.device, or if that is unset `usual`, or if that is null the GPU of the thread's current
/// CUDA context.
Result<void> choose_gpu(Process& process, int device, const cuda::SharedGpu& usual, JoinOptions& options) {
  const bool unset = device == TUTTI_CONFIG_UNDEF_INT;
  if (unset && usual)
    options.gpu = usual;
  else if (device != -1)
    options.gpu = TUTTI_TRY(unset ? process.gpus.current() : process.gpus.gpu(device));
  return {};
}

int device_of(const tuttiConfig_t* config) {
  const bool has = config != nullptr && offsetof(tuttiConfig_t, device) + sizeof(int) <= config->size;
  return has ? config->device : TUTTI_CONFIG_UNDEF_INT;
}

/// Reads only fields within the caller's `size`. The part of a larger struct that this version does not know must be
/// zero.
Result<void> read_config(const tuttiConfig_t* config, JoinOptions& options) {
  if (config == nullptr) return {};
  if (config->magic != TUTTI_CONFIG_MAGIC) return invalid_argument("config was not made with TUTTI_CONFIG_INITIALIZER");
  constexpr std::size_t known = sizeof(tuttiConfig_t);
  const std::size_t size = config->size;
  if (size > 4096)
    return invalid_argument(
        fmt::format("config.size is {} bytes, more than 4096: was config made with TUTTI_CONFIG_INITIALIZER?", size));
  const auto* tail = reinterpret_cast<const unsigned char*>(config);
  for (std::size_t i = known; i < size; ++i)
    if (tail[i] != 0) return invalid_argument("config sets a field that this version does not know");
  const auto has = [size](std::size_t offset, std::size_t bytes) { return offset + bytes <= size; };
  if (has(offsetof(tuttiConfig_t, blocking), sizeof(int)) && config->blocking != TUTTI_CONFIG_UNDEF_INT &&
      config->blocking != 1)
    return invalid_argument("config.blocking must be 1 or unset");
  if (has(offsetof(tuttiConfig_t, deterministic), sizeof(int)) && config->deterministic != TUTTI_CONFIG_UNDEF_INT)
    options.deterministic = config->deterministic != 0;
  if (has(offsetof(tuttiConfig_t, timeoutMs), sizeof(int)) && config->timeoutMs != TUTTI_CONFIG_UNDEF_INT) {
    if (config->timeoutMs < 1) return invalid_argument("config.timeoutMs must be positive");
    options.init_limit_ms = config->timeoutMs;
  }
  if (has(offsetof(tuttiConfig_t, name), sizeof(char*)) && config->name != nullptr) options.name = config->name;
  if (has(offsetof(tuttiConfig_t, progressContext), sizeof(void*)) && config->progress != nullptr)
    options.while_waiting = {.progress = config->progress, .context = config->progressContext};
  if (has(offsetof(tuttiConfig_t, callTimeoutMs), sizeof(int)) && config->callTimeoutMs != TUTTI_CONFIG_UNDEF_INT) {
    if (config->callTimeoutMs < 0) return invalid_argument("config.callTimeoutMs must not be negative");
    options.call_limit = CallLimit{.ms = config->callTimeoutMs, .from = "tuttiConfig_t::callTimeoutMs"};
  }
  if (const int device = device_of(config); device < -1 && device != TUTTI_CONFIG_UNDEF_INT)
    return invalid_argument("config.device must be a GPU number, -1 or unset");
  return {};
}

/// Runs the operation now, or at the end of the open group if there is one.
template <class Op>
Result<void> bring_up(Process& process, std::unique_ptr<Op> operation, tuttiComm_t* to) {
  Op* const made = operation.get();
  auto published = std::make_shared<Result<void>>();
  auto finish = [made, to, published] {
    *to = nullptr;
    auto communicator = made->take();
    if (!communicator) return;  // this rank is in none of the new communicators
    auto handle = publish(std::move(communicator));
    if (handle) *to = *handle;
    if (!handle) *published = std::move(handle).error();
  };
  if (Group::current().open()) {
    Group::current().add(std::move(operation), finish);
    return {};
  }
  Submission submission = Submission::of(std::move(operation));
  submission.finishers.push_back(finish);
  TUTTI_TRY(run_now(process, submission));
  return std::move(*published);
}

/// Deadline (now_ns) of a start that begins now. Errors: as read_config.
Result<std::int64_t> deadline_of(Process& process, const tuttiConfig_t* config) {
  JoinOptions options;
  TUTTI_TRY(read_config(config, options));
  const std::int64_t limit_ms =
      options.init_limit_ms > 0 ? options.init_limit_ms : process.config.integer("TUTTI_INIT_TIMEOUT_MS");
  return process.system.now_ns() + limit_ms * 1'000'000;
}

struct RankToBe {
  int rank = 0;
  int ranks = 1;
  int device = TUTTI_CONFIG_UNDEF_INT;
};

Result<void> init_rank(Process& process, tuttiComm_t* comm, const RankToBe& place, const UniqueId& id,
                       const tuttiConfig_t* config, std::int64_t deadline_ns) {
  const int nranks = place.ranks, rank = place.rank;
  if (nranks < 1 || nranks > limits::ranks_max)
    return invalid_argument(fmt::format("nranks {} is not in 1 to {}", nranks, limits::ranks_max));
  if (rank < 0 || rank >= nranks) return invalid_argument(fmt::format("rank {} is not in 0 to {}", rank, nranks - 1));
  JoinOptions options{.rank = rank, .ranks = nranks, .id = id, .name = {}};
  TUTTI_TRY(read_config(config, options));
  options.deadline_ns = deadline_ns;
  const int device = place.device == TUTTI_CONFIG_UNDEF_INT ? device_of(config) : place.device;
  if (auto chosen = choose_gpu(process, device, nullptr, options); !chosen) {
    refuse_start(process, id, {.rank = rank, .ranks = nranks}, chosen.error(), deadline_ns);
    return chosen;
  }
  return bring_up(process, std::make_unique<Join>(process, std::move(options)), comm);
}

/// Closes the handle, which nobody uses from here on.
Result<void> end(Process& process, tuttiComm_t comm) {
  const auto entry = handles<CommEntry>().close(process.system, comm);
  if (!entry) return invalid_argument("comm is not a communicator, or was destroyed already");
  leave(*entry->communicator);
  return {};
}

/// The value of a launcher's variable. Variables that are tutti settings may also be set in a configuration file. One
/// that was refused stays as it is: without it, a launcher's own may speak of another start.
std::optional<std::string> variable(const Config& config, const char* name) {
  constexpr std::array settings{"TUTTI_RANK", "TUTTI_NRANKS", "TUTTI_COMM_ID", "TUTTI_JOB_ID"};
  const bool sets = std::ranges::find(settings, std::string_view(name)) != settings.end();
  if (sets && config.origin(name) != "default") return config.text(name);
  const char* const value = std::getenv(name);
  return value == nullptr || (sets && *value == '\0') ? std::nullopt : std::optional<std::string>(value);
}

/// As Process::get. A rank whose settings are refused tells the others, who would otherwise wait for it until their
/// limit: `tell` gets the process that does so, the reason, and the deadline of the start.
template <class Tell>
Result<Process*> process_or_tell(const tuttiConfig_t* config, Tell tell) {
  auto process = Process::get();
  Process* const by = process ? nullptr : Process::of_refused();
  if (by == nullptr) return process;  // all is well, or a forked child, which is no rank
  auto deadline_ns = deadline_of(*by, config);
  if (!deadline_ns) deadline_ns = deadline_of(*by, nullptr);
  tell(*by, process.error(), *deadline_ns);
  return process;
}

Result<LaunchInfo> launch_of(const Process& process) {
  return read_launch([&](const char* name) { return variable(process.config, name); });
}

template <class Value>
tuttiResult_t ask(tuttiComm_t comm, Value* value, const char* name, auto&& get) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(value, name));
    auto entry = TUTTI_TRY(use(comm));
    *value = get(*entry->communicator);
    return {};
  });
}

}  // namespace
}  // namespace tutti::api

static_assert(tutti::library_version == TUTTI_VERSION);

using namespace tutti;       // NOLINT: the definitions below are the C functions of tutti.h
using namespace tutti::api;  // NOLINT

tuttiResult_t tuttiCommInitRankConfig(tuttiComm_t* comm, int nranks, tuttiUniqueId id, int rank,
                                      const tuttiConfig_t* config) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(comm, "comm"));
    auto decoded = TUTTI_TRY(UniqueId::decode(id.internal));
    auto process = TUTTI_TRY(process_or_tell(config, [&](Process& by, const Error& why, std::int64_t deadline_ns) {
      refuse_start(by, decoded, {.rank = rank, .ranks = nranks}, why, deadline_ns);
    }));
    auto deadline_ns = TUTTI_TRY(deadline_of(*process, config));
    return init_rank(*process, comm, {.rank = rank, .ranks = nranks}, decoded, config, deadline_ns);
  });
}

tuttiResult_t tuttiCommInitRank(tuttiComm_t* comm, int nranks, tuttiUniqueId id, int rank) {
  return tuttiCommInitRankConfig(comm, nranks, id, rank, nullptr);
}

tuttiResult_t tuttiCommInitAll(tuttiComm_t* made, int ndev, const int* devlist) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(made, "comms"));
    auto process = TUTTI_TRY(Process::get());
    if (ndev < 1) return invalid_argument(fmt::format("ndev {} is not positive", ndev));
    auto deadline_ns = TUTTI_TRY(deadline_of(*process, nullptr));
    auto id = TUTTI_TRY(open_root(*process, /*across_hosts=*/false));
    Group::current().start();
    for (int rank = 0; rank < ndev; ++rank) {
      const int device = devlist == nullptr ? TUTTI_CONFIG_UNDEF_INT : devlist[rank];
      const RankToBe place{.rank = rank, .ranks = ndev, .device = device};
      if (auto begun = init_rank(*process, &made[rank], place, id, nullptr, deadline_ns); !begun)
        Group::current().refuse(begun.error());
    }
    auto made_all = Group::current().end(*process);
    if (!made_all) (void)close_root(*process, id);  // all its ranks are here, and have heard why
    return made_all;
  });
}

tuttiResult_t tuttiCommInitFromEnv(tuttiComm_t* comm, const tuttiConfig_t* config) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(comm, "comm"));
    auto process = TUTTI_TRY(process_or_tell(config, [&](Process& by, const Error& why, std::int64_t deadline_ns) {
      if (const auto launch = launch_of(by)) refuse_at_meeting(by, *launch, why, deadline_ns);
    }));
    auto deadline_ns = TUTTI_TRY(deadline_of(*process, config));
    auto launch = TUTTI_TRY(launch_of(*process));
    auto meeting = TUTTI_TRY(meet(*process, launch, deadline_ns));
    return init_rank(*process, comm, {.rank = meeting.rank, .ranks = meeting.ranks}, meeting.id, config, deadline_ns);
  });
}

tuttiResult_t tuttiCommSplit(tuttiComm_t comm, int color, int key, tuttiComm_t* newcomm, const tuttiConfig_t* config) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(newcomm, "newcomm"));
    auto entry = TUTTI_TRY(use(comm));
    if (color < 0 && color != TUTTI_SPLIT_NOCOLOR)
      return invalid_argument(fmt::format("color {} is negative and not TUTTI_SPLIT_NOCOLOR", color));
    auto& parent = entry->communicator;
    JoinOptions options{.while_waiting = parent->members().while_waiting, .call_limit = parent->waits().limit()};
    TUTTI_TRY(read_config(config, options));
    if (auto chosen = choose_gpu(parent->process(), device_of(config), parent->members().gpu, options); !chosen)
      options.refused = std::move(chosen).error();
    return bring_up(parent->process(), std::make_unique<SplitByColor>(parent, color, key, std::move(options)), newcomm);
  });
}

tuttiResult_t tuttiCommCreateGroup(tuttiComm_t comm, const int* ranks, int nranks, tuttiComm_t* newcomm,
                                   const tuttiConfig_t* config) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(newcomm, "newcomm"));
    TUTTI_TRY(not_null(ranks, "ranks"));
    auto entry = TUTTI_TRY(use(comm));
    auto& parent = entry->communicator;
    if (nranks < 1 || nranks > parent->ranks())
      return invalid_argument(fmt::format("nranks {} is not in 1 to {}", nranks, parent->ranks()));
    std::vector<Rank> members(ranks, ranks + nranks);
    std::vector<Rank> sorted = members;
    std::ranges::sort(sorted);
    if (sorted.front() < 0 || sorted.back() >= parent->ranks() || std::ranges::adjacent_find(sorted) != sorted.end())
      return invalid_argument("ranks must be distinct ranks of comm");
    if (!std::ranges::binary_search(sorted, parent->rank()))
      return invalid_argument(fmt::format("rank {} calls, but is not in ranks", parent->rank()));
    JoinOptions options{.while_waiting = parent->members().while_waiting, .call_limit = parent->waits().limit()};
    TUTTI_TRY(read_config(config, options));
    if (auto chosen = choose_gpu(parent->process(), device_of(config), parent->members().gpu, options); !chosen)
      options.refused = std::move(chosen).error();
    return bring_up(parent->process(), std::make_unique<CreateGroup>(parent, std::move(members), std::move(options)),
                    newcomm);
  });
}

tuttiResult_t tuttiCommFinalize(tuttiComm_t comm) {
  return guarded([&]() -> Result<void> {
    auto entry = TUTTI_TRY(use(comm));
    auto& communicator = *entry->communicator;
    TUTTI_TRY(finish_calls(communicator));
    if (!communicator.failed()) return {};
    return communicator.report_failure();
  });
}

tuttiResult_t tuttiCommDestroy(tuttiComm_t comm) {
  return guarded([&]() -> Result<void> {
    auto process = TUTTI_TRY(Process::get());
    Result<void> finished;
    {
      auto entry = TUTTI_TRY(use(comm));
      finished = finish_calls(*entry->communicator);
    }
    auto ended = end(*process, comm);
    return finished ? std::move(ended) : std::move(finished);
  });
}

tuttiResult_t tuttiCommAbort(tuttiComm_t comm) {
  return guarded([&]() -> Result<void> {
    auto process = TUTTI_TRY(Process::get());
    {
      auto entry = TUTTI_TRY(use(comm));
      entry->communicator->abort();
    }
    return end(*process, comm);
  });
}

tuttiResult_t tuttiCommGetAsyncError(tuttiComm_t comm, tuttiResult_t* asyncError) {
  return ask(comm, asyncError, "asyncError", [](Communicator& c) {
    c.check_device();
    const auto first = c.failure().error_or_loss();
    if (c.failed()) c.failure().mark_reported();
    return first ? static_cast<tuttiResult_t>(first->code) : tuttiSuccess;
  });
}

tuttiResult_t tuttiCommCount(tuttiComm_t comm, int* count) {
  return ask(comm, count, "count", [](const Communicator& c) { return c.ranks(); });
}

tuttiResult_t tuttiCommUserRank(tuttiComm_t comm, int* rank) {
  return ask(comm, rank, "rank", [](const Communicator& c) { return c.rank(); });
}

tuttiResult_t tuttiCommDevice(tuttiComm_t comm, int* device) {
  return ask(comm, device, "device",
             [](const Communicator& c) { return c.members().gpu ? c.members().gpu->ordinal() : -1; });
}

tuttiResult_t tuttiCommSetTimeout(tuttiComm_t comm, int timeoutMs) {
  return guarded([&]() -> Result<void> {
    auto entry = TUTTI_TRY(use(comm));
    if (timeoutMs < 0) return invalid_argument(fmt::format("timeoutMs {} is negative", timeoutMs));
    entry->communicator->waits().set_limit({.ms = timeoutMs, .from = "tuttiCommSetTimeout"});
    return {};
  });
}
