// Fetches the descriptor of a segment from another process: the client of FdServer.
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/descriptors.h"
#include "base/uncancelled.h"
#include "transport/abstract_socket.h"
#include "transport/fd_server.h"
#include "transport/fd_wire.h"
#include "transport/rights.h"

namespace tutti {
namespace {

constexpr std::int64_t look_every_ms = 50;  // how often give_up is asked
constexpr std::int64_t retry_ms = 2;
constexpr std::int64_t ns_per_ms = 1'000'000;

class Patience {
 public:
  Patience(std::int64_t timeout_ns, const std::function<bool()>& give_up) : give_up_(give_up) {
    if (__builtin_add_overflow(real_system().now_ns(), timeout_ns, &deadline_ns_)) deadline_ns_ = INT64_MAX;
  }

  /// Waits until `fd` is readable (−1: waits for no descriptor) or `slice_ms` have passed; true when readable.
  Result<bool> wait(int fd, std::int64_t slice_ms) const {
    if (give_up_()) return remote_error("gave up asking for a segment: the communicator has failed");
    const std::int64_t left_ns = deadline_ns_ - real_system().now_ns();
    if (left_ns <= 0) return Error{.code = Code::timeout, .what = "no answer to the request for a segment"};
    pollfd item{.fd = fd, .events = POLLIN, .revents = 0};
    const std::int64_t ms = std::min(slice_ms, (left_ns + ns_per_ms - 1) / ns_per_ms);
    return ::poll(&item, 1, static_cast<int>(ms)) > 0;
  }

 private:
  const std::function<bool()>& give_up_;
  std::int64_t deadline_ns_ = 0;
};

Error gone(std::string_view name, int why) {
  return Error{
      .code = Code::remote,
      .what = fmt::format("the process that serves segments as \"{}\" is gone, or in another network namespace", name),
      .sys_errno = why};
}

/// Linux 6.5 returns a pidfd of the process at the other end, in any PID namespace. Older kernels give only its pid, if
/// it has one in this namespace. A pid reported by the process itself could mean a different process in another
/// namespace.
UniqueFd pidfd_of(int socket, int pid) {
#ifdef SO_PEERPIDFD
  constexpr int option = SO_PEERPIDFD;
#else
  constexpr int option = 77;
#endif
  const HeldStdio held;
  int pidfd = -1;
  socklen_t bytes = sizeof pidfd;
  if (::getsockopt(socket, SOL_SOCKET, option, &pidfd, &bytes) == 0 && bytes == sizeof pidfd)
    return UniqueFd(above_stdio(pidfd));
  return UniqueFd(above_stdio(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1));
}

/// A connected socket whose other end belongs to this user. Empty: the server's queue is full, try later.
Result<UniqueSocket> access(const std::string& name, SeenProcess& owner) {
  UniqueSocket fd = packet_socket();
  if (!fd) return system_error("open a unix socket", errno);
  const AbstractAddress address(name);
  if (::connect(fd.get(), address.get(), address.bytes()) != 0) {
    if (errno == EAGAIN || errno == EINTR) return UniqueSocket();
    return gone(name, errno);
  }
  // Checked before the key is shown: the owner may have died and another process taken its name.
  const auto end = other_end(fd);
  if (!is_this_user(end))
    return Error{.code = Code::remote,
                 .what = fmt::format("\"{}\" belongs to another user. {}", name, remedy_of_refusal()),
                 .sys_errno = EPERM};
  owner.pid = end->pid;
  owner.pidfd = pidfd_of(fd.get(), owner.pid);  // a later answer proves that the pidfd is of the right process
  return fd;
}

/// Receives one message. Closes all descriptors in it unless there is exactly one. Empty: no complete reply.
std::optional<FdReply> receive_reply(int socket, UniqueFd& fd) {
  FdReply reply;
  iovec bytes{.iov_base = &reply, .iov_len = sizeof reply};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(4 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const HeldStdio held;
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return std::nullopt;

  std::vector<UniqueFd> came;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t offset = 0; offset + sizeof(int) <= at->cmsg_len - CMSG_LEN(0); offset += sizeof(int)) {
      int one;
      std::memcpy(&one, CMSG_DATA(at) + offset, sizeof one);
      came.emplace_back(above_stdio(one));
    }
  }
  if (got != sizeof reply || (message.msg_flags & MSG_TRUNC) != 0 || reply.magic != FdRequest::magic_value)
    return std::nullopt;
  if (came.size() == 1) fd = std::move(came[0]);
  return reply;
}

std::string words_for(Unchecked<FdStatus> told) {
  const auto status = told.checked();
  if (!status) return fmt::format("an answer that does not exist ({})", told.number());
  switch (*status) {
    case FdStatus::granted: return "its descriptor did not arrive (is ulimit -n too low here?)";
    case FdStatus::refused: return fmt::format("refused: wrong key, or another user. {}", remedy_of_refusal());
    case FdStatus::unknown: return "it does not exist (any more)";
    case FdStatus::no_descriptor: return "its owner has no descriptor left to share it: raise ulimit -n there";
  }
  return "";
}

Error not_granted(std::string_view what, Unchecked<FdStatus> status) {
  return {.code = Code::remote,
          .what = fmt::format("{}: {}", what, words_for(status)),
          .sys_errno = status == FdStatus::refused ? EPERM : 0};
}

struct Answer {
  FdReply reply;
  UniqueFd fd;
  SeenProcess owner;  ///< with the connection
};

Result<Answer> ask(const std::string& name, const FdRequest& request, const Patience& patience) {
  if (name.empty() || name.size() > AbstractAddress::name_max)
    return remote_error("the name of a peer's socket is invalid");
  const Uncancelled whole;

  // Under attack, the server drops its oldest connection for a new one: a client dropped without an answer asks again.
  for (;;) {
    Answer answer;
    auto socket = TUTTI_TRY(access(name, answer.owner));
    if (socket && ::send(socket.get(), &request, sizeof request, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof request) {
      while (!TUTTI_TRY(patience.wait(socket.get(), look_every_ms))) continue;
      if (const auto reply = receive_reply(socket.get(), answer.fd)) {
        answer.reply = *reply;
        answer.owner.connected = std::move(socket);
        return answer;
      }
    }
    TUTTI_TRY(patience.wait(-1, retry_ms));
  }
}

}  // namespace

Result<Fetched> fetch_segment(const std::string& name, const ProcessKey& key, SegmentName segment,
                              std::int64_t timeout_ns, const std::function<bool()>& give_up) {
  const FdRequest request{.key = key, .id = segment.id, .generation = segment.generation};
  auto answer = TUTTI_TRY(ask(name, request, Patience(timeout_ns, give_up)));
  if (answer.reply.status != FdStatus::granted || !answer.fd)
    return not_granted(fmt::format("segment {}.{} of process {}", segment.id, segment.generation, answer.owner.pid),
                       answer.reply.status);
  answer.owner.connected = UniqueSocket();
  return Fetched{.segment = {.fd = std::move(answer.fd), .bytes = answer.reply.bytes},
                 .owner = std::move(answer.owner)};
}

bool is_served(const std::string& name) {
  if (name.empty() || name.size() > AbstractAddress::name_max) return true;
  const Uncancelled whole;
  SeenProcess owner;
  const auto connected = access(name, owner);
  return connected || connected.error().sys_errno != ECONNREFUSED;
}

Result<SeenProcess> watch_process(const std::string& name, const ProcessKey& key, std::int64_t timeout_ns,
                                  const std::function<bool()>& give_up) {
  auto answer = TUTTI_TRY(ask(name, {.key = key, .id = FdRequest::watch}, Patience(timeout_ns, give_up)));
  if (answer.reply.status != FdStatus::granted) return not_granted("watch a process", answer.reply.status);
  return std::move(answer.owner);
}

}  // namespace tutti
