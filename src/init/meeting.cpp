#include "init/meeting.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/descriptors.h"
#include "base/file.h"
#include "init/open_root.h"
#include "init/refused_start.h"

namespace tutti {
namespace {

constexpr std::size_t secret_file_bytes_max = std::size_t{64} << 10;

Result<std::string> secret_text(const Process& process) {
  if (const auto& text = process.config.text("TUTTI_COMM_SECRET"); !text.empty()) return text;
  const auto& path = process.config.text("TUTTI_COMM_SECRET_FILE");
  if (path.empty()) return std::string();
  auto text = read_file(path, secret_file_bytes_max);
  if (!text) {
    Error error = std::move(text).error();
    error.code = Code::invalid_argument;
    error.what +=
        fmt::format("; the secret is read from a regular file of at most {} KiB", secret_file_bytes_max >> 10);
    return std::move(error).during("read TUTTI_COMM_SECRET_FILE");
  }
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();  // editors end files with a newline
  if (text->empty()) return invalid_argument(fmt::format("TUTTI_COMM_SECRET_FILE={} is empty", path));
  return text;
}

bool is_numeric(const std::string& host) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  ::freeaddrinfo(found);
  return true;
}

/// Launchers give host names, sockets need numbers. Every rank asks its own resolver: hosts need not agree on names.
Result<std::vector<std::string>> resolve(const Process& process, const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const auto& family = process.config.text("TUTTI_SOCKET_FAMILY");
  hints.ai_family = family == "AF_INET" ? AF_INET : family == "AF_INET6" ? AF_INET6 : AF_UNSPEC;
  addrinfo* found = nullptr;
  const HeldStdio held;  // the resolver's modules may keep connections
  const int status = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  std::vector<std::string> numbers;
  for (const addrinfo* one = status == 0 ? found : nullptr; one != nullptr; one = one->ai_next) {
    char numeric[NI_MAXHOST];
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, numeric, sizeof numeric, nullptr, 0, NI_NUMERICHOST) == 0 &&
        std::ranges::find(numbers, numeric) == numbers.end())
      numbers.emplace_back(numeric);
  }
  if (status == 0) ::freeaddrinfo(found);
  if (!numbers.empty()) return numbers;
  return invalid_argument(fmt::format("the host \"{}\" of rank 0 is unknown here: {}", host, ::gai_strerror(status)));
}

/// Rank 0 does not know its own host by that name. Others may, and it needs the port alone to tell them.
void refuse_at_port(Process& process, const LaunchInfo& launch, const Secret& secret, const Error& why) {
  auto id = open_root(process, {.host = "0.0.0.0", .port = launch.root->port}, secret, {}, std::max(1, launch.ranks));
  if (id) refuse_start(process, *id, {.rank = 0, .ranks = launch.ranks}, why, process.system.now_ns());
}

/// Rank 0 listens at the address, and all ranks derive the id from the secret: nothing has to be sent.
Result<UniqueId> meet_at_address(Process& process, const LaunchInfo& launch, int nth, const std::string& text) {
  if (auto long_enough = secret_from_text(text); !long_enough)
    return std::move(long_enough).error().during("TUTTI_COMM_SECRET");
  const auto secret = TUTTI_TRY(secret_from_text(fmt::format("tutti secret {} {}", nth, text)));
  auto hosts = resolve(process, launch.root->host);
  if (!hosts && launch.rank == 0) refuse_at_port(process, launch, secret, hosts.error());
  if (!hosts) return std::move(hosts).error();
  UniqueId id{
      .root = {.host = hosts->front(), .port = launch.root->port}, .secret = secret, .root_may_come_later = true};
  id.also.assign(hosts->begin() + 1, hosts->end());
  if (launch.rank != 0) return id;
  // A host often resolves its own name to an address that is useless to other hosts: 127.0.1.1.
  const std::string any = listening_address({"0.0.0.0", hosts->front()});
  const SocketAddress at{.host = is_numeric(launch.root->host) ? hosts->front() : any, .port = launch.root->port};
  auto opened = open_root(process, at, id.secret, {}, std::max(1, launch.ranks));
  if (opened) return id;
  if (opened.error().sys_errno == EADDRINUSE)
    return std::move(opened).error().during(
        "the address of rank 0 is taken, by another job, another program or a second "
        "rank 0 of this one: set TUTTI_COMM_ID to a free port");
  return std::move(opened).error();
}

/// The launcher's key-value space; null if there is none to use, with `why` set if there should have been one.
Result<std::shared_ptr<KeyValueSpace>> find_space(Process& process, const LaunchInfo& launch, std::int64_t deadline_ns,
                                                  std::string& why) {
  auto space = process.launcher.get(process.system, launch, deadline_ns);
  if (space) return space;
  // No library or no descriptor: all ranks of the job are in this situation. A launcher that falls silent or sends
  // malformed data is an error.
  const bool absent = space.error().code == Code::system || space.error().code == Code::invalid_usage;
  if (!absent) return space;
  why = space.error().text();
  process.log.info(LogTopic::init, "start", "the launcher's key-value space is not used: {}", why);
  return std::shared_ptr<KeyValueSpace>();
}

std::string known(int value) {
  return value < 0 ? "?" : std::to_string(value);
}

void tell(Process& process, const LaunchInfo& launch) {
  process.log.info(LogTopic::init, "start", "started by {}: rank {} of {}, on this host {} of {}", launch.launcher,
                   launch.rank, launch.ranks > 0 ? std::to_string(launch.ranks) : "?", known(launch.local_rank),
                   known(launch.local_ranks));
  for (const auto& line : launch.not_used)
    process.log.info(LogTopic::init, "start", "ignored, as {} takes precedence: {}", launch.launcher, line);
}

constexpr std::int64_t refused_limit_ns = 2'000'000'000;

/// Ranks of other hosts will not find the socket, so a long wait is useless.
std::int64_t host_deadline_ns(Process& process, const LaunchInfo& launch, std::int64_t deadline_ns) {
  constexpr std::int64_t short_ns = 10'000'000'000;
  const bool several_hosts = launch.local_ranks > 0 && launch.local_ranks < launch.ranks;
  return several_hosts ? std::min(deadline_ns, process.system.now_ns() + short_ns) : deadline_ns;
}

}  // namespace

Result<Meeting> meet(Process& process, const LaunchInfo& launch, std::int64_t deadline_ns) {
  const int nth = process.launched.fetch_add(1);
  tell(process, launch);
  const auto secret = TUTTI_TRY(secret_text(process));

  Meeting meeting{.rank = launch.rank, .ranks = launch.ranks, .id = {}};
  const auto by = [&](const char* way, Result<UniqueId> id) -> Result<Meeting> {
    meeting.id = TUTTI_TRY(std::move(id));
    process.log.info(LogTopic::init, "start", "the meeting point is {}, agreed by {}", meeting.id.where(), way);
    return std::move(meeting);
  };
  const bool address = !secret.empty() && launch.root;
  if (address && (launch.root_from_user || launch.space == SpaceKind::none))
    return by("address and secret", meet_at_address(process, launch, nth, secret));

  std::string why;
  if (launch.ranks != 1 && launch.space != SpaceKind::none) {
    auto space = TUTTI_TRY(find_space(process, launch, deadline_ns, why));
    if (space) {
      if (space->ranks() > 0) meeting.ranks = space->ranks();
      return by(space->name(),
                meet_in_space(*space, launch.rank, nth, deadline_ns, [&] { return open_root(process); }));
    }
  }
  if (address) return by("address and secret", meet_at_address(process, launch, nth, secret));
  if (!secret.empty()) return invalid_usage("TUTTI_COMM_SECRET is set, but no address: set TUTTI_COMM_ID=host:port");
  if (launch.ranks == 0) return invalid_usage("only PMIx knows the number of ranks: " + why);
  auto id = meet_on_host(process, launch, nth, host_deadline_ns(process, launch, deadline_ns));
  if (!id && !why.empty()) return std::move(id).error().during(why);
  return by("a socket of this host", std::move(id));
}

void refuse_at_meeting(Process& process, const LaunchInfo& launch, const Error& why, std::int64_t deadline_ns) {
  if (launch.ranks == 1) return;
  // Rank 0 may never come, or not on this host. But a launcher's space needs every rank, whatever becomes of it.
  const bool looks = launch.rank != 0 && launch.space == SpaceKind::none;
  const std::int64_t short_ns = std::min(deadline_ns, process.system.now_ns() + refused_limit_ns);
  const auto meeting = meet(process, launch, looks ? short_ns : deadline_ns);
  if (meeting) refuse_start(process, meeting->id, {.rank = meeting->rank, .ranks = meeting->ranks}, why, deadline_ns);
}

}  // namespace tutti
