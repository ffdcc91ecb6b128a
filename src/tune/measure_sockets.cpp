#include "tune/measure_sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/unique_fd.h"

namespace tutti {
namespace {

constexpr std::size_t piece_bytes = 64 << 10;

/// Two ends of a connection, non-blocking.
using Ends = std::array<UniqueFd, 2>;

std::optional<Ends> connect_over_loopback() {
  sockaddr_in at{.sin_family = AF_INET};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener || ::bind(listener.get(), address, size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), address, &size) != 0)
    return {};
  Ends ends{UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), UniqueFd()};
  if (!ends[0]) return {};
  // The listener's queue takes the connection before anybody accepts it.
  if (::connect(ends[0].get(), address, size) != 0 && errno != EINPROGRESS) return {};
  ends[1] = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!ends[1]) return {};
  const int on = 1;
  for (const UniqueFd& end : ends) ::setsockopt(end.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return ends;
}

/// Sends all bytes, and takes them from the other end wherever the connection is full. False if it is broken.
bool pass_on(const Ends& ends, std::span<std::byte> bytes) {
  std::size_t sent = 0, received = 0;
  while (received < bytes.size()) {
    const ssize_t out =
        sent < bytes.size() ? ::send(ends[0].get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL) : 0;
    const ssize_t in = ::recv(ends[1].get(), bytes.data() + received, bytes.size() - received, 0);
    if ((out < 0 && errno != EAGAIN) || (in < 0 && errno != EAGAIN) || (in == 0)) return false;
    sent += static_cast<std::size_t>(std::max<ssize_t>(out, 0));
    received += static_cast<std::size_t>(std::max<ssize_t>(in, 0));
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
    while ((got = ::recv(end, &byte, 1, 0)) < 0 && errno == EAGAIN) {
    }
    if (got != 1) return false;
  }
  return true;
}

}  // namespace

void measure_sockets(Sampler& sampler, Machine& machine) {
  const auto ends = connect_over_loopback();
  if (!ends) return;
  std::vector<std::byte> piece(piece_bytes);
  const auto seconds_of = [&](std::size_t bytes) {
    constexpr int times = 4;
    return sampler.best_of([&] {
      return sampler.run([&](int member) {
        for (int i = 0; member == 0 && i < times; ++i) pass_on(*ends, std::span(piece).first(bytes));
      });
    }) / times;
  };
  // Of the three actions on a message in the model, one is the sender's, two are the receiver's.
  constexpr double actions = 3;
  const double small = seconds_of(1), large = seconds_of(piece_bytes);
  machine.wire.message_us = 1e6 * small / actions;
  constexpr double most_gbps = 1000;
  machine.wire.gbps = std::min(2e-9 * static_cast<double>(piece_bytes) / std::max(large - small, 1e-9), most_gbps);
  if (sampler.members() < 2 || sampler.disturbed()) return;
  constexpr int rounds = 20;
  const double one_way = sampler.best_of([&] {
    return sampler.run([&](int member) { there_and_back(*ends, member, rounds); });
  }) / (2 * rounds);
  constexpr double least_us = 1;
  machine.wire.hop_us = std::max(1e6 * (one_way - small), least_us);
}

}  // namespace tutti
