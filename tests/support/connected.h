// Connected sockets, both ends in this process.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/system.h"

namespace tutti::testing {

struct Ends {
  std::vector<Socket> callers;
  std::vector<Socket> callees;
};

inline void await_ready(System& system, const Socket& socket, bool write) {
  PollItem item{.handle = socket.handle(), .want_read = !write, .want_write = write};
  for (int i = 0; !item.ready && i < 1000; ++i) system.poll({&item, 1}, 60'000'000'000);
  ASSERT_TRUE(item.ready);
}

/// `count` connections to a listener on `host`.
inline Ends connected(System& system, const std::string& host, int count) {
  Ends ends;
  auto listener = system.listen({.host = host});
  EXPECT_TRUE(listener) << listener.error().text();
  for (int i = 0; i < count; ++i) {
    auto caller = system.connect(*system.address(*listener));
    EXPECT_TRUE(caller) << caller.error().text();
    await_ready(system, *listener, false);
    auto callee = system.accept(*listener);
    EXPECT_TRUE(callee && *callee);
    await_ready(system, *caller, true);
    ends.callers.push_back(*std::move(caller));
    ends.callees.push_back(*std::move(callee));
  }
  return ends;
}

inline bool has_ipv6() {
  return static_cast<bool>(real_system().listen({.host = "::1"}));
}

}  // namespace tutti::testing
