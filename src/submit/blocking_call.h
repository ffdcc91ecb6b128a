// The usual case: one blocking collective outside any group. Allocates nothing on the heap.
#pragma once

#include <cstdint>

#include "call/request.h"
#include "comm/communicator.h"

namespace tutti {

/// Runs `request`, which is on host memory of one host, in the calling thread, after all calls queued before it.
Result<void> run_alone(Communicator& communicator, const Request& request);

/// As run_alone, for a call by any route that is not queued. `published`: as in make_host_collective.
Result<void> run_in_turn(Communicator& communicator, const Request& request, std::uint64_t published = 0);

}  // namespace tutti
