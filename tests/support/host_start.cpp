#include "support/host_start.h"

#include <cstdlib>

namespace tutti::testing {

tuttiResult_t start_on(Seat& seat, const NetNamespaces& net, int host, tuttiComm_t* comm) {
  if (!net.enter(host)) {
    ADD_FAILURE() << "cannot enter the namespace";
    return tuttiSystemError;
  }
  const std::string root = net.address(0);
  ::setenv("TUTTI_COMM_ID", (root.find(':') == std::string::npos ? root + ":4711" : "[" + root + "]:4711").c_str(), 1);
  ::setenv("TUTTI_COMM_SECRET", "not known to anybody else", 1);
  ::setenv("TUTTI_RANK", std::to_string(seat.rank()).c_str(), 1);
  ::setenv("TUTTI_NRANKS", std::to_string(seat.ranks()).c_str(), 1);
  return tuttiCommInitFromEnv(comm, nullptr);
}

tuttiComm_t start_on(Seat& seat, const NetNamespaces& net, int host) {
  tuttiComm_t comm = nullptr;
  EXPECT_TRUE(ok(start_on(seat, net, host, &comm)));
  return comm;
}

}  // namespace tutti::testing
