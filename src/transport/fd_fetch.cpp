// How a process asks another for the descriptor of a segment: the client of FdServer.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "transport/fd_server.h"
#include "transport/fd_wire.h"

namespace tutti {
namespace {

constexpr std::int64_t look_every_ms = 50;  // at give_up
constexpr std::int64_t retry_ms = 2;
constexpr std::int64_t ns_per_ms = 1'000'000;

class Patience {
 public:
  Patience(std::int64_t timeout_ns, const std::function<bool()>& give_up) : give_up_(give_up) {
    if (__builtin_add_overflow(real_system().now_ns(), timeout_ns, &deadline_ns_)) deadline_ns_ = INT64_MAX;
  }

  /// Waits until `fd` is readable (fd −1: not at all), or `slice_ms` passed; true when readable.
  Result<bool> wait(int fd, std::int64_t slice_ms) const {
    if (give_up_())
      return Error{.code = Code::remote, .what = "gave up asking for a segment: the communicator has failed"};
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

Error failed(std::string what) {
  return Error{.code = Code::system, .what = std::move(what), .sys_errno = errno};
}

/// Connected, and the other end is this user's. Empty: its queue is full, try later.
Result<UniqueFd> reach(const std::string& name, int* pid) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return failed("open a unix socket (EMFILE: raise ulimit -n)");
  const FdAddress address(name);
  if (::connect(fd.get(), address.get(), address.bytes()) != 0) {
    if (errno == EAGAIN || errno == EINTR) return UniqueFd();
    return gone(name, errno);
  }
  // Before the key is shown: the owner may have died and somebody else taken its name.
  if (!is_same_user(fd.get(), pid))
    return Error{.code = Code::remote, .what = fmt::format("\"{}\" belongs to another user", name)};
  return fd;
}

/// One message; what it brings besides bytes is closed unless it is exactly one descriptor. Empty: no whole reply.
std::optional<FdReply> receive_reply(int socket, UniqueFd& fd) {
  FdReply reply;
  iovec bytes{.iov_base = &reply, .iov_len = sizeof reply};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(4 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return std::nullopt;

  std::vector<UniqueFd> came;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t offset = 0; offset + sizeof(int) <= at->cmsg_len - CMSG_LEN(0); offset += sizeof(int)) {
      int one;
      std::memcpy(&one, CMSG_DATA(at) + offset, sizeof one);
      came.emplace_back(one);
    }
  }
  if (got != sizeof reply || (message.msg_flags & MSG_TRUNC) != 0 || reply.magic != FdRequest::magic_value)
    return std::nullopt;
  if (came.size() == 1) fd = std::move(came[0]);
  return reply;
}

Result<Fetched> read(const FdReply& reply, UniqueFd fd, SegmentName segment, int pid) {
  const auto remote = [&](std::string_view why) {
    return Error{.code = Code::remote,
                 .what = fmt::format("segment {}.{} of process {}: {}", segment.id, segment.generation, pid, why)};
  };
  switch (reply.status) {
    case FdStatus::granted:
      if (!fd) return remote("its descriptor did not arrive (is ulimit -n too low here?)");
      return Fetched{.segment = {.fd = std::move(fd), .bytes = reply.bytes}, .pid = pid};
    case FdStatus::refused: return remote("refused: wrong key, or another user");
    case FdStatus::unknown: return remote("it does not exist (any more)");
    case FdStatus::no_descriptor: return remote("its owner has no descriptor left to share it: raise ulimit -n there");
  }
  return remote("an answer that is none");
}

}  // namespace

Result<Fetched> fetch_segment(const std::string& name, const ProcessKey& key, SegmentName segment,
                              std::int64_t timeout_ns, const std::function<bool()>& give_up) {
  if (name.empty() || name.size() > FdAddress::name_max)
    return Error{.code = Code::remote, .what = "a peer's socket has no possible name"};
  const FdRequest request{.key = key, .id = segment.id, .generation = segment.generation};
  const Patience patience(timeout_ns, give_up);

  // A server under attack drops the oldest connection for a new one: whoever is dropped without an answer asks again.
  for (;;) {
    int pid = 0;
    auto socket = reach(name, &pid);
    if (!socket) return std::move(socket).error();
    if (*socket && ::send(socket->get(), &request, sizeof request, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof request) {
      for (;;) {
        auto readable = patience.wait(socket->get(), look_every_ms);
        if (!readable) return std::move(readable).error();
        if (*readable) break;
      }
      UniqueFd fd;
      if (const auto reply = receive_reply(socket->get(), fd)) return read(*reply, std::move(fd), segment, pid);
    }
    if (auto waited = patience.wait(-1, retry_ms); !waited) return std::move(waited).error();
  }
}

}  // namespace tutti
