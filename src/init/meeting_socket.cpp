// Passes the id from rank 0 to the other ranks of one host, over a socket whose two ends the kernel identifies.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/descriptors.h"
#include "base/file.h"
#include "base/unique_fd.h"
#include "bootstrap/bootstrap.h"
#include "init/id_server.h"
#include "init/job_sockets.h"
#include "init/meeting.h"
#include "init/open_root.h"
#include "init/refused_start.h"
#include "net/digest.h"

namespace tutti {
namespace {

constexpr std::int64_t retry_ns_min = 5'000'000;
constexpr std::int64_t retry_ns_max = 40'000'000;
constexpr std::int64_t cousin_after_ns = 500'000'000;     // waits this long for a sibling, which is preferred
constexpr std::int64_t unclear_limit_ns = 2'000'000'000;  // a restarted job may overlap with its predecessor
constexpr std::int64_t tell_limit_ns = 2'000'000'000;
constexpr std::size_t others_max = 65536;

constexpr const char* remedy =
    "jobs of one user on one host that start at the same time are told apart by TUTTI_JOB_ID (any text, the same for "
    "all ranks of one job) or TUTTI_COMM_ID";

/// Whether another process has the same launcher as this one.
enum class Kin {
  sibling,  ///< has the same parent, or is this process
  /// each has a parent without other children, such as `timeout 60 program`, and these parents have one parent
  cousin,
  stranger,  ///< neither; or it has another terminal's sid, or is in a PID namespace that is not visible from here
};

/// Nothing: the process is gone or not visible. 0: its parent is outside this PID namespace.
std::optional<pid_t> parent_of(pid_t pid) {
  const std::string line = content_of(fmt::format("/proc/{}/stat", pid));
  // The name in parentheses may contain anything; the state and the parent follow it.
  const auto end = line.rfind(") ");
  if (end == std::string::npos || line.size() < end + 5) return std::nullopt;
  pid_t parent = 0;
  return std::sscanf(line.c_str() + end + 4, "%d", &parent) == 1 ? std::optional(parent) : std::nullopt;
}

/// Looks at the main thread's children only: nearly all programs start others from their main thread.
bool has_one_child(pid_t pid) {
  std::istringstream file(content_of(fmt::format("/proc/{0}/task/{0}/children", pid)));
  pid_t child = 0;
  return file >> child && !(file >> child);
}

/// Of the process with this number, as translated by the kernel to this PID namespace; 0: none here.
Kin kin_of(pid_t pid) {
  if (pid == ::getpid()) return Kin::sibling;
  if (pid <= 0 || ::getsid(pid) != ::getsid(0)) return Kin::stranger;
  const auto parent = parent_of(pid);
  if (!parent) return Kin::stranger;
  const pid_t own = ::getppid();
  if (*parent == own) return Kin::sibling;
  if (*parent <= 1 || own <= 1) return Kin::stranger;
  const auto starter = parent_of(*parent);
  const bool wrapped = starter && *starter > 1 && starter == parent_of(own);
  return wrapped && has_one_child(*parent) && has_one_child(own) ? Kin::cousin : Kin::stranger;
}

/// Jobs without a name are told apart by their sizes, too. Ranks of a job with a name that were told of different sizes
/// are to meet: rank 0 says what is wrong.
Result<std::string> job_digest(const LaunchInfo& launch, int nth) {
  const bool named = launch.job_named();
  const std::string text =
      fmt::format("{}|{}|{}|{}|{}", ::geteuid(), named ? "job" : "kin", launch.job, named ? 0 : launch.ranks, nth);
  auto digest = TUTTI_TRY(sha256(std::as_bytes(std::span(text))));
  std::string job = "tutti-";
  for (int i = 0; i < 16; ++i) job += fmt::format("{:02x}", std::to_integer<unsigned>(digest[i]));
  return job;
}

/// The meeting points of this job that are visible now.
struct Sight {
  int own = 0;      ///< with this job's name, or of a sibling
  int cousins = 0;  ///< of a job without a name, started in the same way
  int strangers = 0;
  UniqueSocket to_own;
  UniqueSocket to_cousin;

  bool empty() const { return own + cousins + strangers == 0; }
};

class Search {
 public:
  Search(System& system, const LaunchInfo& launch, std::string job)
      : system_(system), launch_(launch), job_(std::move(job)) {}

  Result<Sight> look(std::int64_t deadline_ns) {
    auto names = TUTTI_TRY(listeners_for_job(job_));
    Sight sight;
    for (const std::string& name : names) {
      if (others_.contains(name)) continue;
      if (system_.now_ns() >= deadline_ns) break;
      auto call = TUTTI_TRY(call_job(name));
      if (call.outcome == JobCall::Outcome::other_user && others_.size() < others_max) others_.insert(name);
      if (call.outcome == JobCall::Outcome::connected) count(sight, std::move(call));
    }
    return sight;
  }

 private:
  void count(Sight& sight, JobCall call) const {
    const Kin kin = launch_.job_named() ? Kin::sibling : kin_of(call.pid);
    if (kin == Kin::stranger) ++sight.strangers;
    if (kin == Kin::sibling && ++sight.own == 1) sight.to_own = std::move(call.fd);
    if (kin == Kin::cousin && ++sight.cousins == 1) sight.to_cousin = std::move(call.fd);
  }

  System& system_;
  const LaunchInfo& launch_;
  const std::string job_;
  std::set<std::string> others_;  ///< of other users; not called again
};

Error twin_error() {
  return {.code = Code::invalid_usage,
          .what = fmt::format("another job of the same name is starting on this host, or rank 0 of this one was "
                              "started twice: {}",
                              remedy)};
}

/// Tells each rank 0 of this name of the others. Its own is among those that hear it, and about to end.
Result<void> tell_twins(const LaunchInfo& launch, const std::string& job) {
  const std::string word = write_question(/*rank=*/0, launch.ranks);
  for (const std::string& name : TUTTI_TRY(listeners_for_job(job))) {
    const auto call = TUTTI_TRY(call_job(name));
    if (call.outcome != JobCall::Outcome::connected) continue;
    if (!launch.job_named() && kin_of(call.pid) != Kin::sibling) continue;
    (void)::send(call.fd.get(), word.data(), word.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  return {};
}

/// Binds first, then checks: of two jobs that start together, at least one sees the other. It ends both, or ranks of
/// the one would meet those of the other.
Result<UniqueSocket> open_listener(System& system, const LaunchInfo& launch, int nth, std::int64_t deadline_ns) {
  const auto job = TUTTI_TRY(job_digest(launch, nth));
  auto listener = listen_for_job(job);
  if (!listener) return listener;
  auto sight = TUTTI_TRY(Search(system, launch, job).look(deadline_ns));
  if (sight.own <= 1) return listener;  // the count includes this one
  TUTTI_TRY(tell_twins(launch, job));
  return twin_error();
}

/// Where the socket was refused: gives the reason to the ranks that ask within two seconds, if there is a socket now.
void serve_reason(System& system, const LaunchInfo& launch, int nth, const Error& why) {
  const std::int64_t deadline_ns = system.now_ns() + tell_limit_ns;
  auto listener = open_listener(system, launch, nth, deadline_ns);
  if (!listener) return;
  IdServer server(system, *std::move(listener), write_answer(why), launch.ranks, deadline_ns);
  (void)drive_for_a_while(system, server);
}

/// Rank 0 listens first, and reserves two descriptors, for the service thread and for a caller, so that it can report
/// when it has none left for the rest.
Result<UniqueId> serve_id(Process& process, const LaunchInfo& launch, int nth, std::int64_t deadline_ns) {
  if (launch.ranks == 1) return open_root(process, /*across_hosts=*/false);
  auto listener = open_listener(process.system, launch, nth, deadline_ns);
  if (!listener) {
    if (listener.error().code == Code::system) serve_reason(process.system, launch, nth, listener.error());
    return std::move(listener).error();
  }
  std::array<UniqueFd, 2> kept;
  for (UniqueFd& one : kept) one = UniqueFd(above_stdio([&] { return ::fcntl(listener->get(), F_DUPFD_CLOEXEC, 0); }));
  auto id = open_root(process, /*across_hosts=*/false, launch.job_named() ? "" : remedy);
  kept = {};
  IdServer::OnStuck on_stuck;  // the root's failure ends this rank's own waiting, and the ranks that are let in hear it
  if (id)
    on_stuck = [&process, root = process.pending_closes.root_of(id->secret), ranks = launch.ranks](const Error& why) {
      root->excuse(/*rank=*/0, ranks, why);
      process.service.wake();
    };
  const auto self = std::make_shared<std::weak_ptr<const Task>>();
  IdServer::OnTwin on_twin;
  if (id)
    on_twin = [&process, on_stuck, self] {
      Error why = twin_error();
      on_stuck(why);
      if (const auto server = self->lock()) process.pending_closes.add(server);  // ranks may be about to ask
      return why;
    };
  auto server = std::make_shared<IdServer>(process.system, *std::move(listener), write_answer(id), launch.ranks,
                                           deadline_ns, on_stuck, on_twin);
  *self = server;
  if (auto added = process.service.add(server); !added) {
    if (id) return std::move(added).error();
    (void)drive_for_a_while(process.system, *server);  // there is no service thread, which may be the reason
    return id;
  }
  // A process that cannot start ends soon, while other ranks may be about to ask.
  if (!id) process.pending_closes.add(std::shared_ptr<const Task>(server));
  return id;
}

/// Asks the server that was found. Nothing: it has gone.
Result<std::optional<UniqueId>> ask(System& system, const UniqueSocket& fd, const LaunchInfo& launch,
                                    std::int64_t deadline_ns) {
  const std::string question = write_question(launch.rank, launch.ranks);
  if (::send(fd.get(), question.data(), question.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    return std::optional<UniqueId>();
  PollItem item{.handle = fd.get(), .want_read = true};
  while (!item.ready && system.now_ns() < deadline_ns) system.poll({&item, 1}, deadline_ns - system.now_ns());
  std::array<char, 1024> packet{};
  const auto got = ::recv(fd.get(), packet.data(), packet.size(), MSG_DONTWAIT);
  if (got <= 0) return std::optional<UniqueId>();
  auto id = read_answer({packet.data(), static_cast<std::size_t>(got)});
  wipe(std::as_writable_bytes(std::span(packet)));
  if (!id) return std::move(id).error().at_peer(0);
  return std::optional(*std::move(id));
}

Error unclear(const Sight& sight) {
  const int same = sight.own > 0 ? sight.own : sight.cousins;
  const std::string seen =
      same > 1 ? fmt::format("{} jobs that cannot be distinguished are starting on this host", same)
               : "rank 0 of this job did not appear on this host, and the one that did has another parent process";
  return {.code = Code::invalid_usage, .what = fmt::format("{}: {}", seen, remedy), .peer = 0};
}

Result<UniqueId> fetch_id(System& system, const LaunchInfo& launch, int nth, std::int64_t deadline_ns) {
  Search search(system, launch, TUTTI_TRY(job_digest(launch, nth)));
  std::int64_t seen_since_ns = -1;
  std::int64_t retry_ns = retry_ns_min;
  for (std::int64_t now = system.now_ns(); now < deadline_ns; now = system.now_ns()) {
    auto sight = TUTTI_TRY(search.look(deadline_ns));
    if (sight.empty())
      seen_since_ns = -1;
    else if (seen_since_ns < 0)
      seen_since_ns = now;
    const std::int64_t seen_ns = sight.empty() ? 0 : now - seen_since_ns;
    const bool cousin = sight.own == 0 && sight.cousins == 1 && seen_ns >= cousin_after_ns;
    if (sight.own == 1 || cousin) {
      auto id = TUTTI_TRY(ask(system, cousin ? sight.to_cousin : sight.to_own, launch, deadline_ns));
      if (id) return *std::move(id);
    } else if (seen_ns >= unclear_limit_ns) {
      return unclear(sight);
    }
    system.poll({}, std::min(retry_ns, std::max<std::int64_t>(0, deadline_ns - system.now_ns())));
    retry_ns = std::min(retry_ns * 2, retry_ns_max);
  }
  return Error{
      .code = Code::timeout,
      .what = fmt::format("rank 0 of this {} job of {} ranks did not appear on this host. The number of ranks, "
                          "TUTTI_JOB_ID, TUTTI_COMM_ID and TUTTI_COMM_SECRET must be equal on all ranks; ranks on "
                          "several hosts need TUTTI_COMM_SECRET (or TUTTI_COMM_SECRET_FILE), and TUTTI_COMM_ID where "
                          "the launcher gives no address",
                          launch.launcher, launch.ranks),
      .peer = 0};
}

}  // namespace

Result<UniqueId> meet_on_host(Process& process, const LaunchInfo& launch, int nth, std::int64_t deadline_ns) {
  return launch.rank == 0 ? serve_id(process, launch, nth, deadline_ns)
                          : fetch_id(process.system, launch, nth, deadline_ns);
}

}  // namespace tutti
