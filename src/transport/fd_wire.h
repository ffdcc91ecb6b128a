// The messages between FdServer and fetch_segment. Both ends run the same build: the start checks this before any
// fetch.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/enumeration.h"
#include "transport/fd_server.h"

namespace tutti {

struct FdRequest {
  static constexpr std::uint32_t watch = 0;  ///< replaces an id, which is never 0: keep the connection
  static constexpr std::uint64_t magic_value = 0x3164'6665'6974'7574;  // "tutiefd1"
  std::uint64_t magic = magic_value;
  ProcessKey key{};
  std::uint32_t id = 0;
  std::uint32_t generation = 0;
};
static_assert(sizeof(FdRequest) == 48);

enum class FdStatus : std::uint32_t { granted = 0, refused = 1, unknown = 2, no_descriptor = 3, last = no_descriptor };

struct FdReply {
  std::uint64_t magic = FdRequest::magic_value;
  Unchecked<FdStatus> status = FdStatus::refused;
  std::uint32_t reserved = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(FdReply) == 24);

/// An abstract name without a file: it vanishes with its process.
class FdAddress {
 public:
  static constexpr std::size_t name_max = sizeof(sockaddr_un::sun_path) - 1;

  explicit FdAddress(std::string_view name) {
    assert(name.size() <= name_max);
    raw_.sun_family = AF_UNIX;
    std::ranges::copy(name, raw_.sun_path + 1);
    bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&raw_); }
  socklen_t bytes() const { return bytes_; }

 private:
  sockaddr_un raw_{};
  socklen_t bytes_ = 0;
};

/// Whether the other end belongs to this user. `pid` receives its pid as translated to this PID namespace; 0: none
/// here.
inline bool is_same_user(int socket, int* pid = nullptr) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || bytes != sizeof peer) return false;
  if (pid != nullptr) *pid = peer.pid;
  return peer.uid == ::geteuid();
}

}  // namespace tutti
