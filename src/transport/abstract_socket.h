// Unix sockets with abstract names: without a file, so a name vanishes with its process. They keep packet boundaries.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/descriptors.h"
#include "base/own_sockets.h"

namespace tutti {

class AbstractAddress {
 public:
  static constexpr std::size_t name_max = sizeof(sockaddr_un::sun_path) - 1;

  explicit AbstractAddress(std::string_view name) {
    assert(name.size() <= name_max);
    raw_.sun_family = AF_UNIX;
    std::ranges::copy(name, raw_.sun_path + 1);  // behind a zero byte
    bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&raw_); }
  socklen_t bytes() const { return bytes_; }

 private:
  sockaddr_un raw_{};
  socklen_t bytes_ = 0;
};

/// Nonblocking; empty: errno tells why.
inline UniqueSocket packet_socket() {
  return UniqueSocket(above_stdio([&] { return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }));
}

/// Whose the other end is, as the kernel says; its pid as translated to this PID namespace, 0: none here.
inline std::optional<ucred> other_end(const UniqueSocket& fd) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || bytes != sizeof peer) return std::nullopt;
  return peer;
}

inline bool is_this_user(const std::optional<ucred>& end) {
  return end && end->uid == ::geteuid();
}

}  // namespace tutti
