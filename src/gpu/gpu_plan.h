// A rank's plan of a call on device memory.
#pragma once

#include "call/request.h"
#include "comm/communicator.h"
#include "gpu/gpu_context.h"

namespace tutti {

/// Chooses the plan, and makes it on first use. `waiting` is by_host, or the same in all calls of a communicator.
std::shared_ptr<GpuPlan> plan_on_gpu(Communicator& communicator, const Request& request, Waiting waiting);

}  // namespace tutti
