// Ports for tests that name one before they listen to it.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace tutti::testing {

/// The first of so many ports in a row that nobody has on 127.0.0.1 at this moment; 0 and a failure where there is
/// none.
inline int free_port(int in_a_row = 1) {
  for (int tries = 0; tries < 100; ++tries) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int first = 0;  // any, to begin with
    bool free = true;
    std::vector<int> held;
    for (int nth = 0; free && nth < in_a_row; ++nth) {
      if (nth > 0) address.sin_port = htons(static_cast<std::uint16_t>(first + nth));
      held.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      socklen_t length = sizeof address;
      free = ::bind(held.back(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
             ::getsockname(held.back(), reinterpret_cast<sockaddr*>(&address), &length) == 0;
      if (nth == 0) first = ntohs(address.sin_port);
    }
    for (const int fd : held) ::close(fd);
    if (free && first + in_a_row <= 65'536) return first;
  }
  ADD_FAILURE() << "no " << in_a_row << " free ports in a row";
  return 0;
}

}  // namespace tutti::testing
