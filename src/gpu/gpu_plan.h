// The plan by which a rank takes part in a call on device memory.
#pragma once

#include "call/request.h"
#include "comm/communicator.h"
#include "gpu/gpu_context.h"

namespace tutti {

/// Chosen, and made on first use. `meeting`: all ranks' kernels run at the same time and wait for each other; false: by
/// windows in any case. Nothing is raced, as nobody sees when a call ends.
std::shared_ptr<GpuPlan> plan_on_gpu(Communicator& communicator, const Request& request, bool meeting);

}  // namespace tutti
