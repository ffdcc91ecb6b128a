// A unix socket in the hands of somebody who does not keep to the rules.
#pragma once

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "transport/fd_wire.h"

namespace tutti::testing {

inline UniqueFd raw_connect(const std::string& name) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const FdAddress address(name);
  if (::connect(fd.get(), address.get(), address.bytes()) != 0) fd.reset();
  return fd;
}

inline UniqueFd raw_listen(const std::string& name) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const FdAddress address(name);
  EXPECT_EQ(::bind(fd.get(), address.get(), address.bytes()), 0);
  EXPECT_EQ(::listen(fd.get(), 8), 0);
  return fd;
}

inline bool raw_send(const UniqueFd& fd, std::string_view bytes) {
  return ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

}  // namespace tutti::testing
