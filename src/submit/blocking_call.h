// The usual case: one collective, blocking, outside any group. Nothing on the heap.
#pragma once

#include "call/request.h"
#include "comm/communicator.h"

namespace tutti {

/// Runs `request` in the calling thread, after what was queued before.
Result<void> run_alone(Communicator& communicator, const Request& request);

}  // namespace tutti
