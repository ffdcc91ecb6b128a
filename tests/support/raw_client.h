// A unix socket in the hands of somebody who does not keep to the rules.
#pragma once

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "transport/abstract_socket.h"
#include "transport/fd_wire.h"

namespace tutti::testing {

inline UniqueFd raw_connect(const std::string& name) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const AbstractAddress address(name);
  if (::connect(fd.get(), address.get(), address.bytes()) != 0) fd.reset();
  return fd;
}

inline UniqueFd raw_listen(const std::string& name) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const AbstractAddress address(name);
  EXPECT_EQ(::bind(fd.get(), address.get(), address.bytes()), 0);
  EXPECT_EQ(::listen(fd.get(), 8), 0);
  return fd;
}

inline bool raw_send(const UniqueFd& fd, std::string_view bytes) {
  return ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

/// One message on a socket, with room for descriptors.
class RawMessage {
 public:
  RawMessage(void* data, std::size_t bytes, std::size_t descriptors)
      : data_{data, bytes}, control_(descriptors == 0 ? 0 : CMSG_SPACE(descriptors * sizeof(int))) {
    message_.msg_iov = &data_;
    message_.msg_iovlen = 1;
    message_.msg_control = control_.empty() ? nullptr : control_.data();
    message_.msg_controllen = control_.size();
  }
  RawMessage(const RawMessage&) = delete;
  RawMessage& operator=(const RawMessage&) = delete;
  msghdr* get() { return &message_; }

 private:
  iovec data_;
  std::vector<std::byte> control_;  // aligned as memory of new is
  msghdr message_{};
};

inline bool raw_send(const UniqueFd& fd, std::string_view bytes, std::span<const int> descriptors) {
  RawMessage message(const_cast<char*>(bytes.data()), bytes.size(), descriptors.size());
  if (cmsghdr* const header = CMSG_FIRSTHDR(message.get()); header != nullptr) {
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(fd.get(), message.get(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

inline ProcessKey key_of(unsigned seed) {
  ProcessKey key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(seed + i);
  return key;
}

}  // namespace tutti::testing
