#include "transport/socket.h"

#include <new>
#include <utility>

#include <fmt/format.h>

namespace tutti {
namespace {

constexpr std::align_val_t page{4096};

}  // namespace

SocketLink::SocketLink(System& system, std::vector<Socket> sockets, int peer, std::string peer_name,
                       std::size_t piece_bytes)
    : system_(system),
      sockets_(std::move(sockets)),
      peer_(peer),
      peer_name_(std::move(peer_name)),
      piece_bytes_(piece_bytes) {
  assert(!sockets_.empty());
}

Result<std::size_t> SocketLink::send(std::size_t socket, std::span<const std::span<const std::byte>> pieces) {
  return outcome(system_.send_pieces(sockets_[socket], pieces));
}

Result<std::size_t> SocketLink::receive(std::size_t socket, std::span<std::byte> into) {
  return outcome(system_.receive(sockets_[socket], into));
}

Result<std::size_t> SocketLink::outcome(Result<Moved> moved) const {
  if (moved && !moved->closed) return moved->bytes;
  const int reason = moved ? 0 : moved.error().sys_errno;
  return Error{.code = Code::remote,
               .what = fmt::format("the connection to {} {}", peer_name_, moved ? "was closed" : "was lost"),
               .sys_errno = reason,
               .peer = peer_};
}

MessageMemory::MessageMemory(std::size_t bytes) : data_(static_cast<std::byte*>(::operator new(bytes, page))) {}

void MessageMemory::Free::operator()(std::byte* data) const {
  ::operator delete(data, page);
}

}  // namespace tutti
