// Measures what a message over TCP costs this machine: system calls, copies, and the way through the network stack.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <optional>
#include <span>
#include <vector>

#include "base/descriptors.h"
#include "base/unique_fd.h"
#include "tune/measure.h"
#include "tune/sampler.h"

namespace tutti {
namespace {

constexpr int spins_max = 1'000'000;  // system calls in a row that find nothing: far longer than any turn takes
constexpr std::size_t piece_bytes = 64 << 10, whole_bytes = 512 << 10;

/// Two ends of a connection, non-blocking.
using Ends = std::array<UniqueFd, 2>;

UniqueFd tcp_socket() {
  return UniqueFd(above_stdio([] { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }));
}

std::optional<Ends> connect_over_loopback() {
  sockaddr_in at{.sin_family = AF_INET};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  const UniqueFd listener = tcp_socket();
  if (!listener || ::bind(listener.get(), address, size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), address, &size) != 0)
    return {};
  Ends ends{tcp_socket(), UniqueFd()};
  if (!ends[0]) return {};
  // The listener's queue takes the connection before anybody accepts it; not where loopback is filtered.
  constexpr int patience_ms = 100;
  pollfd arrival{.fd = listener.get(), .events = POLLIN, .revents = 0};
  if (::connect(ends[0].get(), address, size) != 0 && errno != EINPROGRESS) return {};
  if (::poll(&arrival, 1, patience_ms) != 1) return {};
  ends[1] =
      UniqueFd(above_stdio([&] { return ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); }));
  if (!ends[1]) return {};
  const int on = 1;
  for (const UniqueFd& end : ends) ::setsockopt(end.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return ends;
}

/// One thread sends and takes at once, or each of two does one of them.
struct Part {
  bool sends = true;
  bool takes = true;
};

/// Passes `bytes` from one end to the other. False if the connection is broken.
bool pass_on(const Ends& ends, std::span<std::byte> bytes, Part part = {}) {
  std::size_t left_to_send = part.sends ? bytes.size() : 0, left_to_take = part.takes ? bytes.size() : 0;
  for (int spins = 0; left_to_send + left_to_take > 0; ++spins) {
    const ssize_t out =
        left_to_send > 0 ? ::send(ends[0].get(), bytes.data(), std::min(left_to_send, piece_bytes), MSG_NOSIGNAL) : 0;
    if (out < 0 && errno != EAGAIN) return false;
    left_to_send -= static_cast<std::size_t>(std::max<ssize_t>(out, 0));
    const ssize_t in =
        left_to_take > 0 ? ::recv(ends[1].get(), bytes.data(), std::min(left_to_take, piece_bytes), 0) : 1;
    if (in == 0 || (in < 0 && errno != EAGAIN) || spins == spins_max) return false;
    if (out > 0 || (left_to_take > 0 && in > 0)) spins = 0;
    if (left_to_take > 0) left_to_take -= static_cast<std::size_t>(std::max<ssize_t>(in, 0));
  }
  return true;
}

/// Member 0 sends a byte at one end, member 1 sends it back from the other, so many times.
bool there_and_back(const Ends& ends, int member, int rounds) {
  const int end = ends[static_cast<std::size_t>(member)].get();
  char byte = 0;
  for (int i = 0; i < 2 * rounds; ++i) {
    if (i % 2 == member) {
      if (::send(end, &byte, 1, MSG_NOSIGNAL) != 1) return false;
      continue;
    }
    ssize_t got = -1;
    for (int spins = 0; got < 0 && spins < spins_max; ++spins) {
      got = ::recv(end, &byte, 1, 0);
      if (got < 0 && errno != EAGAIN) return false;
    }
    if (got != 1) return false;
  }
  return true;
}

}  // namespace

void measure_sockets(Sampler& sampler, Machine& machine) {
  const auto ends = connect_over_loopback();
  if (!ends) return;
  std::vector<std::byte> bytes(whole_bytes);
  const SocketRates before = machine.wire;
  std::atomic<bool> works = true;
  constexpr int times = 4;
  const double small = sampler.best_of([&] {
    return sampler.run([&](int member) {
      for (int i = 0; member == 0 && i < times; ++i) works = works && pass_on(*ends, std::span(bytes).first(1));
    });
  }) / times;
  // Of the three actions on a message in the model, one is the sender's, two are the receiver's.
  constexpr double actions = 3;
  machine.wire.message_us = 1e6 * small / actions;
  if (sampler.members() < 2 || sampler.disturbed()) return;
  // Both ends at work at once, on cores of their own, as far as the connection permits.
  const double streamed = sampler.best_of([&] {
    return sampler.run(
        [&](int member) { works = works && pass_on(*ends, bytes, {.sends = member == 0, .takes = member == 1}); });
  });
  constexpr double most_gbps = 1000;
  machine.wire.gbps = std::min(1e-9 * static_cast<double>(whole_bytes) / std::max(streamed, 1e-9), most_gbps);
  constexpr int rounds = 20;
  const double one_way = sampler.best_of([&] {
    return sampler.run([&](int member) { works = works && there_and_back(*ends, member, rounds); });
  }) / (2 * rounds);
  constexpr double least_us = 1;
  machine.wire.hop_us = std::max(1e6 * (one_way - small), least_us);
  if (!works) machine.wire = before;
}

}  // namespace tutti
