#include "base/system.h"

#include <arpa/inet.h>
#include <linux/futex.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>

#include <fmt/format.h>

#include "base/descriptors.h"
#include "base/own_sockets.h"

namespace tutti {
namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;

timespec to_timespec(std::int64_t ns) {
  return {.tv_sec = static_cast<time_t>(ns / ns_per_s), .tv_nsec = static_cast<long>(ns % ns_per_s)};
}

std::int64_t ns_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * ns_per_s + now.tv_nsec;
}

std::int64_t monotonic_ns() {
  return ns_of(CLOCK_MONOTONIC);
}

/// Caps the limit at some years instead of overflowing.
std::int64_t ns_from_now(std::int64_t timeout_ns) {
  return monotonic_ns() + std::clamp(timeout_ns, std::int64_t{0}, std::int64_t{1} << 60);
}

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* until) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  return ::syscall(SYS_futex, &word, operation, value, until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

Error failed(std::string what) {
  return Error{.code = Code::system, .what = std::move(what), .sys_errno = errno};
}

std::string text(const SocketAddress& at) {
  return at.host.find(':') == std::string::npos ? fmt::format("{}:{}", at.host, at.port)
                                                : fmt::format("[{}]:{}", at.host, at.port);
}

struct RawAddress {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(sockaddr_storage);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Result<RawAddress> to_raw(const SocketAddress& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) != 0)
    return invalid_argument(fmt::format("\"{}\" is not an IP address", address.host));
  RawAddress raw;
  std::memcpy(&raw.storage, found->ai_addr, found->ai_addrlen);
  raw.bytes = found->ai_addrlen;
  ::freeaddrinfo(found);
  return raw;
}

Result<SocketAddress> from_raw(RawAddress& raw) {
  char host[NI_MAXHOST];
  if (::getnameinfo(raw.get(), raw.bytes, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0)
    return Error{.code = Code::system, .what = "socket address of an unknown kind"};
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&raw.storage);
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&raw.storage);
  const auto port = ntohs(raw.storage.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port);
  // A listener on the wildcard address of both families sees IPv4 peers as "::ffff:10.0.0.9".
  constexpr std::string_view mapped = "::ffff:";
  const bool is_mapped = raw.storage.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
  const std::string_view text = host;
  return SocketAddress{.host = std::string(is_mapped && text.starts_with(mapped) ? text.substr(mapped.size()) : text),
                       .port = port};
}

Result<UniqueSocket> open_socket(int family) {
  UniqueSocket fd{
      above_stdio([&] { return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP); })};
  if (!fd) return failed("open a socket");
  return fd;
}

/// Sends small frames at once, and detects within ten seconds that a host has vanished silently. With fewer probes a
/// network that loses one packet in seven would end a start that waits. No TCP_USER_TIMEOUT: it would also end a
/// connection whose reader is merely slow.
void tune(int fd) {
  const auto set = [fd](int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof(value)); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 9);
}

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK;
}

/// The number of bytes that `call` moved.
template <class Call>
Result<Moved> sent(const Socket& socket, Call call) {
  while (true) {
    const ssize_t moved = call(socket.handle());
    if (moved >= 0) return Moved{.bytes = static_cast<std::size_t>(moved)};
    if (would_block()) return Moved{};
    if (errno == EPIPE) return Moved{.closed = true};
    if (errno != EINTR) return failed("send");
  }
}

/// As sent, for a call that has place for `wanted` bytes.
template <class Call>
Result<Moved> received(std::size_t wanted, Call call) {
  while (true) {
    const ssize_t got = call();
    if (got >= 0) return Moved{.bytes = static_cast<std::size_t>(got), .closed = got == 0 && wanted > 0};
    if (would_block()) return Moved{};
    if (errno != EINTR) return failed("receive");
  }
}

class RealSystem final : public System {
 public:
  std::int64_t now_ns() override { return monotonic_ns(); }

  void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) override {
    // A shared futex, not a private one: peers in other processes wake this process. With an absolute limit, signals do
    // not prolong the wait.
    const timespec until = to_timespec(ns_from_now(timeout_ns));
    while (futex(word, FUTEX_WAIT_BITSET, expected, timeout_ns < 0 ? nullptr : &until) != 0 && errno == EINTR) {
    }
  }

  void wake(std::atomic<std::uint32_t>& word) override { futex(word, FUTEX_WAKE, INT_MAX, nullptr); }

  void yield() override { ::sched_yield(); }

  void poll(std::span<PollItem> items, std::int64_t timeout_ns) override;
  Result<Socket> listen(const SocketAddress& at) override;
  Result<SocketAddress> address(const Socket& socket) override;
  Result<SocketAddress> peer_address(const Socket& socket) override;
  Result<Socket> accept(Socket& listener) override;
  Result<Socket> connect(const SocketAddress& to) override;
  Result<Moved> send(Socket& socket, std::span<const std::byte> bytes) override;
  Result<Moved> send_pieces(Socket& socket, std::span<const std::span<const std::byte>> pieces) override;
  Result<Moved> receive(Socket& socket, std::span<std::byte> bytes) override;
  Result<Moved> receive_two(Socket& socket, std::span<std::byte> first, std::span<std::byte> second) override;
  void close(int handle) override { UniqueSocket::close(handle); }
  std::string congestion(const Socket& socket) override;
  bool set_congestion(Socket& socket, const std::string& name) override;
  void set_patience(Socket& socket, std::int64_t ns, Reader reader) override;
  std::optional<Outgoing> outgoing(const Socket& socket) override;
};

void RealSystem::poll(std::span<PollItem> items, std::int64_t timeout_ns) {
  std::vector<pollfd> polled(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const int events = (items[i].want_read ? POLLIN : 0) | (items[i].want_write ? POLLOUT : 0);
    polled[i] = {.fd = items[i].handle, .events = static_cast<short>(events), .revents = 0};
  }
  const std::int64_t until = ns_from_now(timeout_ns);
  int ready = 0;
  do {
    const timespec left = to_timespec(std::max<std::int64_t>(until - monotonic_ns(), 0));
    ready = ::ppoll(polled.data(), polled.size(), timeout_ns < 0 ? nullptr : &left, nullptr);
  } while (ready < 0 && errno == EINTR);
  for (std::size_t i = 0; i < items.size(); ++i) items[i].ready = ready > 0 && polled[i].revents != 0;
}

/// What the kernel's words for an address do not say.
const char* why_no_address(int error, std::uint16_t port) {
  if (error == EADDRINUSE && port == 0) return " (any port of net.ipv4.ip_local_port_range, and all are in use)";
  if (error == EADDRNOTAVAIL) return " (no interface of this host has that address)";
  return "";
}

Result<Socket> RealSystem::listen(const SocketAddress& at) {
  auto raw = TUTTI_TRY(to_raw(at));
  auto fd = TUTTI_TRY(open_socket(raw.storage.ss_family));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(fd.get(), raw.get(), raw.bytes) != 0 || ::listen(fd.get(), SOMAXCONN) != 0)
    return failed(fmt::format("listen on {}{}", text(at), why_no_address(errno, at.port)));
  return Socket(*this, fd.release());
}

Result<SocketAddress> RealSystem::address(const Socket& socket) {
  RawAddress raw;
  if (::getsockname(socket.handle(), raw.get(), &raw.bytes) != 0) return failed("ask a socket for its address");
  return from_raw(raw);
}

Result<SocketAddress> RealSystem::peer_address(const Socket& socket) {
  RawAddress raw;
  if (::getpeername(socket.handle(), raw.get(), &raw.bytes) != 0) return failed("ask a socket for its peer");
  return from_raw(raw);
}

Result<Socket> RealSystem::accept(Socket& listener) {
  while (true) {
    UniqueSocket fd{
        above_stdio([&] { return ::accept4(listener.handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); })};
    if (fd) {
      tune(fd.get());
      return Socket(*this, fd.release());
    }
    if (would_block()) return Socket();
    // The peer has already closed the connection, or it met an error of its own, which Linux reports here: accept the
    // next one.
    const bool callers_trouble = errno == ECONNABORTED || errno == EPROTO || errno == EPERM || errno == ENETDOWN ||
                                 errno == EHOSTDOWN || errno == EHOSTUNREACH || errno == ENETUNREACH;
    if (errno != EINTR && !callers_trouble) return failed("accept a connection");
  }
}

Result<Socket> RealSystem::connect(const SocketAddress& to) {
  auto raw = TUTTI_TRY(to_raw(to));
  auto fd = TUTTI_TRY(open_socket(raw.storage.ss_family));
  tune(fd.get());
  if (::connect(fd.get(), raw.get(), raw.bytes) != 0 && errno != EINPROGRESS && errno != EINTR)
    return failed(fmt::format("connect to {}", text(to)));
  return Socket(*this, fd.release());
}

Result<Moved> RealSystem::send(Socket& socket, std::span<const std::byte> bytes) {
  return sent(socket, [bytes](int fd) { return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
}

Result<Moved> RealSystem::send_pieces(Socket& socket, std::span<const std::span<const std::byte>> pieces) {
  std::array<iovec, send_pieces_max> parts;
  const std::size_t count = std::min(pieces.size(), parts.size());
  for (std::size_t i = 0; i < count; ++i)
    parts[i] = {.iov_base = const_cast<std::byte*>(pieces[i].data()), .iov_len = pieces[i].size()};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return sent(socket, [&](int fd) { return ::sendmsg(fd, &message, MSG_NOSIGNAL); });
}

Result<Moved> RealSystem::receive(Socket& socket, std::span<std::byte> bytes) {
  return received(bytes.size(), [&] { return ::recv(socket.handle(), bytes.data(), bytes.size(), 0); });
}

Result<Moved> RealSystem::receive_two(Socket& socket, std::span<std::byte> first, std::span<std::byte> second) {
  std::array<iovec, 2> parts{iovec{.iov_base = first.data(), .iov_len = first.size()},
                             iovec{.iov_base = second.data(), .iov_len = second.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return received(first.size() + second.size(), [&] { return ::recvmsg(socket.handle(), &message, 0); });
}

std::string RealSystem::congestion(const Socket& socket) {
  char name[16] = {};  // the kernel's TCP_CA_NAME_MAX
  socklen_t bytes = sizeof(name) - 1;
  if (::getsockopt(socket.handle(), IPPROTO_TCP, TCP_CONGESTION, name, &bytes) != 0) return {};
  return name;
}

bool RealSystem::set_congestion(Socket& socket, const std::string& name) {
  return ::setsockopt(socket.handle(), IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) ==
         0;
}

/// Of the kernel's tcp_info, which has grown with time: older kernels give less.
std::optional<Outgoing> RealSystem::outgoing(const Socket& socket) {
  constexpr std::size_t acknowledged_at = 120;  // tcpi_bytes_acked, which <netinet/tcp.h> may not know (Linux 4.1)
  std::array<std::byte, 256> bytes{};
  socklen_t length = bytes.size();
  if (::getsockopt(socket.handle(), IPPROTO_TCP, TCP_INFO, bytes.data(), &length) != 0 ||
      length < acknowledged_at + sizeof(std::uint64_t))
    return std::nullopt;
  tcp_info info{};
  std::memcpy(&info, bytes.data(), std::min<std::size_t>(length, sizeof info));
  Outgoing outgoing{.under_way = info.tcpi_unacked > 0, .again = info.tcpi_retransmits};
  std::memcpy(&outgoing.acknowledged, bytes.data() + acknowledged_at, sizeof outgoing.acknowledged);
  return outgoing;
}

/// TCP doubles the time until it sends lost bytes again, so after a cut of some seconds it waits for as long once more.
/// TCP_RTO_MAX_MS (Linux 6.15) ends that at a second, or later where patience is long: TCP gives a connection up after
/// a number of tries (15), so that they must last for as long.
void RealSystem::set_patience(Socket& socket, std::int64_t ns, Reader reader) {
  constexpr int rto_max_option = 44;  // which the C library's headers may not know
  constexpr std::int64_t rto_ms_min = 1'000, rto_ms_max = 120'000, tries = 12;  // what is allowed; with few to spare
  const auto set = [&](int option, int value) {
    ::setsockopt(socket.handle(), IPPROTO_TCP, option, &value, sizeof(value));
  };
  set(rto_max_option, static_cast<int>(std::clamp(ns / 1'000'000 / tries, rto_ms_min, rto_ms_max)));
  // One probe a second, after the first second; fewer where there would be more than are allowed.
  constexpr std::int64_t probes_min = 3, probes_max = 127;
  const std::int64_t seconds = std::max(ns / 1'000'000'000, probes_min);
  const std::int64_t every_s = (seconds + probes_max - 1) / probes_max;
  set(TCP_KEEPINTVL, static_cast<int>(std::min<std::int64_t>(every_s, 32'767)));
  set(TCP_KEEPCNT, static_cast<int>(std::min((seconds + every_s - 1) / every_s, probes_max)));
  constexpr std::int64_t ms_max = 1'000'000'000;
  if (reader == Reader::always) set(TCP_USER_TIMEOUT, static_cast<int>(std::min(ns / 1'000'000, ms_max)));
}

}  // namespace

Socket::~Socket() {
  if (handle_ >= 0) system_->close(handle_);
}

Result<Moved> System::receive_two(Socket& socket, std::span<std::byte> first, std::span<std::byte> second) {
  if (first.empty()) return receive(socket, second);
  auto moved = receive(socket, first);
  if (!moved || moved->closed || moved->bytes < first.size()) return moved;
  const auto rest = receive(socket, second);
  if (rest) moved->bytes += rest->bytes;
  return moved;  // the next call meets whatever ended the second one
}

std::int64_t wall_clock_ns() {
  return ns_of(CLOCK_REALTIME);
}

System& real_system() {
  // Never destroyed: the service thread may still use it while the process exits.
  static auto& system = *new RealSystem;
  return system;
}

}  // namespace tutti
