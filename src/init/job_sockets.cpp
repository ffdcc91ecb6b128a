#include "init/job_sockets.h"

#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fmt/format.h>

#include "base/file.h"
#include "transport/abstract_socket.h"

namespace tutti {
namespace {

constexpr const char* table_path = "/proc/net/unix";
constexpr unsigned listens = 0x10000;  // __SO_ACCEPTCON, in the column of flags

/// The name in one line of the table, if it listens: "Num: RefCount Protocol Flags Type St Inode @name".
std::optional<std::string_view> listener_in(std::string_view line) {
  const auto at = line.find(" @");
  unsigned flags = 0;
  if (at == std::string_view::npos || std::sscanf(std::string(line).c_str(), "%*s %*s %*s %x", &flags) != 1)
    return std::nullopt;
  if ((flags & listens) == 0) return std::nullopt;
  return line.substr(at + 2);
}

}  // namespace

Result<UniqueSocket> listen_for_job(const std::string& job) {
  const auto failed = [] {
    return system_error("open the socket on which rank 0 hands out the communicator's id", errno);
  };
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) return failed();
  const AbstractAddress address(fmt::format("{}-{:016x}", job, random));
  UniqueSocket listener = packet_socket();
  if (!listener || ::bind(listener.get(), address.get(), address.bytes()) != 0 || ::listen(listener.get(), 1024) != 0)
    return failed();
  return listener;
}

std::vector<std::string> listeners_in(std::string_view table, const std::string& job) {
  const std::size_t length = job.size() + 1 + 16;
  const std::string prefix = job + "-";
  std::vector<std::string> names;
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    if (line.find(prefix) == std::string_view::npos) continue;
    const auto name = listener_in(line);
    if (name && name->size() == length && name->starts_with(prefix)) names.emplace_back(*name);
  }
  return names;
}

Result<std::vector<std::string>> listeners_for_job(const std::string& job) {
  auto table = read_file(table_path);
  if (!table && table.error().lacks_descriptor()) return std::move(table).error().during("look for rank 0");
  if (!table || table->empty())
    return system_error(
        fmt::format("{} cannot be read, where ranks of one host find each other: set TUTTI_COMM_ID "
                    "and TUTTI_COMM_SECRET (or TUTTI_COMM_SECRET_FILE)",
                    table_path));
  return listeners_in(*table, job);
}

Result<JobCall> call_job(const std::string& name) {
  JobCall call{.fd = packet_socket()};
  if (!call.fd) return system_error("open the socket to ask rank 0 for the communicator's id", errno);
  const AbstractAddress address(name);
  if (::connect(call.fd.get(), address.get(), address.bytes()) != 0) return call;
  const auto peer = other_end(call.fd);
  if (!peer) return call;
  call.outcome = is_this_user(peer) ? JobCall::Outcome::connected : JobCall::Outcome::other_user;
  call.pid = peer->pid;
  return call;
}

}  // namespace tutti
