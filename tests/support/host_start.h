// Starts ranks on the hosts of NetNamespaces, by address and secret.
#pragma once

#include "support/launch_ranks.h"
#include "support/net_namespaces.h"

namespace tutti::testing {

/// Moves the calling thread to `host` and makes a communicator of all ranks from the environment; rank 0 has to be on
/// host 0.
tuttiResult_t start_on(Seat& seat, const NetNamespaces& net, int host, tuttiComm_t* comm);
/// The same; fails the test, and gives none, on an error.
tuttiComm_t start_on(Seat& seat, const NetNamespaces& net, int host);

}  // namespace tutti::testing
