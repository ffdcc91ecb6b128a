// The usual case: one blocking collective outside any group. Allocates nothing on the heap.
#pragma once

#include "call/request.h"
#include "comm/communicator.h"

namespace tutti {

/// Runs `request` in the calling thread, after all calls queued before it.
Result<void> run_alone(Communicator& communicator, const Request& request);

}  // namespace tutti
