#include "transport/fd_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/descriptors.h"
#include "base/random.h"
#include "transport/abstract_socket.h"
#include "transport/fd_wire.h"

namespace tutti {
namespace {

constexpr std::size_t pending_max = 64;
constexpr std::size_t watchers_max = 65'536;  // each has shown the key
constexpr int backlog = 128;
constexpr std::int64_t pending_ns_max = 2'000'000'000;
constexpr std::int64_t deaf_ns = 100'000'000;

/// Takes the same time wherever the keys differ.
bool same_key(const ProcessKey& a, const ProcessKey& b) {
  volatile unsigned differs = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differs = differs | static_cast<unsigned>(a[i] ^ b[i]);
  return differs == 0;
}

void send_reply(int to, const FdReply& reply, int fd = -1) {
  iovec bytes{.iov_base = const_cast<FdReply*>(&reply), .iov_len = sizeof reply};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  // A client that does not receive the reply has gone or asks again.
  [[maybe_unused]] const auto sent = ::sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

Result<std::unique_ptr<FdServer>> FdServer::open(const SegmentTable& segments, const ProcessKey& key) {
  std::array<std::byte, 16> random;
  TUTTI_TRY(fill_random(random));
  std::string name = "tutti-";
  for (const std::byte b : random) name += fmt::format("{:02x}", static_cast<unsigned>(b));

  UniqueSocket listener = packet_socket();
  const AbstractAddress address(name);
  if (!listener || ::bind(listener.get(), address.get(), address.bytes()) != 0 ||
      ::listen(listener.get(), backlog) != 0)
    return system_error("open a unix socket", errno);
  return std::unique_ptr<FdServer>(new FdServer(segments, key, std::move(listener), std::move(name)));
}

/// The kernel keeps who listens from the last call of `listen`, not who the process is now.
Result<void> FdServer::follow_user() {
  if (user_ == Rights::user_now()) return {};
  if (::listen(listener_.get(), backlog) != 0) return system_error("listen as another user", errno);
  user_ = Rights::user_now();
  return {};
}

bool FdServer::advance() {
  const std::int64_t now_ns = real_system().now_ns();
  accept_all(now_ns);
  std::erase_if(pending_, [&](Pending& pending) { return answer(pending) || now_ns >= pending.deadline_ns; });
  drop_watchers();
  spare_.take();
  return true;
}

/// Watchers send no more data: a readable socket means that the watcher has closed it.
void FdServer::drop_watchers() {
  std::erase_if(watchers_, [](const UniqueSocket& watcher) {
    std::byte nothing;
    const ssize_t got = ::recv(watcher.get(), &nothing, sizeof nothing, MSG_DONTWAIT);
    return got >= 0 || (errno != EAGAIN && errno != EINTR);
  });
}

std::int64_t FdServer::poll_set(std::vector<PollItem>& items) {
  std::int64_t next_ns = std::numeric_limits<std::int64_t>::max();
  if (deaf_until_ns_ == 0)
    items.push_back({.handle = listener_.get(), .want_read = true});
  else
    next_ns = deaf_until_ns_;
  for (const auto& pending : pending_) {
    items.push_back({.handle = pending.fd.get(), .want_read = true});
    next_ns = std::min(next_ns, pending.deadline_ns);
  }
  for (const UniqueSocket& watcher : watchers_) items.push_back({.handle = watcher.get(), .want_read = true});
  return next_ns;
}

void FdServer::accept_all(std::int64_t now_ns) {
  if (now_ns < deaf_until_ns_) return;
  deaf_until_ns_ = 0;
  // Bounded: other tasks of this thread must run too.
  for (std::size_t accepted = 0; accepted < pending_max; ++accepted) {
    UniqueSocket fd(
        above_stdio([&] { return ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); }));
    if (!fd) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // It is in use while the peer that was told by it is still connected.
      if ((errno == EMFILE || errno == ENFILE) && spare_.give()) continue;
      if (errno != EAGAIN) deaf_until_ns_ = now_ns + deaf_ns;
      return;
    }
    if (!is_this_user(other_end(fd))) {
      send_reply(fd.get(), {.status = FdStatus::refused});
      continue;
    }
    if (pending_.size() == pending_max) pending_.erase(pending_.begin());
    pending_.push_back({.fd = std::move(fd), .deadline_ns = now_ns + pending_ns_max, .in_place_of_spare = !spare_});
  }
}

/// False: the request has not arrived yet. True: the request was answered, or deserves no answer.
bool FdServer::answer(Pending& pending) {
  FdRequest request;
  const ssize_t got = ::recv(pending.fd.get(), &request, sizeof request, MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0) return errno != EAGAIN && errno != EINTR;
  if (got != sizeof request || request.magic != FdRequest::magic_value) return true;

  const auto reply = [&](const FdReply& words, int fd = -1) {
    send_reply(pending.fd.get(), words, fd);
    return true;
  };
  if (!same_key(request.key, key_)) return reply({.status = FdStatus::refused});
  if (request.id == FdRequest::watch) {
    if (watchers_.size() == watchers_max) return true;
    if (pending.in_place_of_spare) return reply({.status = FdStatus::no_descriptor});
    reply({.status = FdStatus::granted});
    watchers_.push_back(std::move(pending.fd));
    return true;
  }
  auto segment = segments_.share({.id = request.id, .generation = request.generation});
  if (segment) return reply({.status = FdStatus::granted, .bytes = segment->bytes}, segment->fd.get());
  return reply({.status = segment.error().code == Code::system ? FdStatus::no_descriptor : FdStatus::unknown});
}

}  // namespace tutti
