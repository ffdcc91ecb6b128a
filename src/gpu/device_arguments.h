// What is asked of the buffers and the stream of a call in a communicator with a GPU.
#pragma once

#include "call/request.h"
#include "comm/communicator.h"
#include "cuda/pointer.h"

namespace tutti {

/// Whether the call is on device memory: by its buffers, or where it has none by its stream. `gpu_stream`: the call
/// names a stream of a GPU. Errors: invalid_argument (one buffer of each kind, memory of another GPU), cuda.
Result<bool> is_on_device(const Communicator& communicator, const Request& request, bool gpu_stream);
Result<bool> is_on_device(const Communicator& communicator, const PeerRequest& request, bool gpu_stream);
/// Errors: as is_on_device.
Result<bool> is_on_device(const Communicator& communicator, const void* buffer);

/// Whether calls on device memory take this reduction and these buffers, by whichever path they go. Errors:
/// invalid_argument.
Result<void> check_device_call(const Communicator& communicator, const Request& request);
/// Checks what the path of a call on device memory asks for. Errors: invalid_argument (a buffer that is not aligned to
/// its elements, a stream of another GPU, a stream that differs between threads), invalid_usage (a captured stream,
/// where the host takes part), cuda.
Result<void> check_routed(const Communicator& communicator, const Request& request);
Result<void> check_routed(const Communicator& communicator, const PeerRequest& request);

}  // namespace tutti
