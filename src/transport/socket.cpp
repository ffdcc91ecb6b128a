#include "transport/socket.h"

#include <utility>

#include <fmt/format.h>

namespace tutti {

SocketLink::SocketLink(System& system, std::vector<Socket> sockets, Ends ends, std::size_t piece_bytes)
    : system_(system), sockets_(std::move(sockets)), ends_(std::move(ends)), piece_bytes_(piece_bytes) {
  assert(!sockets_.empty());
}

Result<std::size_t> SocketLink::send(std::size_t socket, std::span<const std::span<const std::byte>> pieces) {
  return outcome(system_.send_pieces(sockets_[socket], pieces));
}

Result<std::size_t> SocketLink::receive(std::size_t socket, std::span<std::byte> first, std::span<std::byte> second) {
  auto received = outcome(second.empty() ? system_.receive(sockets_[socket], first)
                                         : system_.receive_two(sockets_[socket], first, second));
  if (received) received_bytes_ += *received;
  return received;
}

Error SocketLink::shifted(std::uint64_t number, std::size_t socket) const {
  return Error{.code = Code::remote,
               .what = fmt::format("what came from {} is not what it sent: message {} on channel {} does not end with "
                                   "its mark. Another part of one of the two programs has written to the connection's "
                                   "descriptor, or read from it (here it is number {}); look for descriptors that are "
                                   "used after they were closed",
                                   ends_.peer_name, number, ends_.channel, sockets_[socket].handle()),
               .sys_errno = EBADMSG,
               .peer = ends_.peer};
}

Result<std::size_t> SocketLink::outcome(Result<Moved> moved) const {
  if (moved && !moved->closed) return moved->bytes;
  const int reason = moved ? 0 : moved.error().sys_errno;
  return Error{.code = Code::remote,
               .what = fmt::format("the connection to {} {}", ends_.peer_name, moved ? "was closed" : "was lost"),
               .sys_errno = reason,
               .peer = ends_.peer};
}

}  // namespace tutti
