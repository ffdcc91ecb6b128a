// Asks the driver, in every call, what kind of memory a caller's pointer refers to, and which GPU a stream belongs to.
#pragma once

#include "base/error.h"
#include "cuda/resources.h"

namespace tutti::cuda {

/// managed: the driver moves the memory between host and GPU. Pinned host memory counts as host.
enum class MemoryKind { host, device, managed };

struct PointerFacts {
  MemoryKind kind = MemoryKind::host;
  Ordinal device = -1;  ///< of device memory
};

/// Memory unknown to the driver counts as host memory. Errors: cuda.
Result<PointerFacts> query_pointer(const Driver& driver, const void* pointer);

/// Whether the non-null buffers of a call are memory of `gpu` (true) or of the host (false).
/// Errors: invalid_argument (one buffer of each kind; memory of another GPU), cuda.
Result<bool> on_gpu(const Gpu& gpu, const void* sendbuff, const void* recvbuff);

/// Checks that work on `gpu` may be queued on `stream`; the default streams belong to every GPU. Errors:
/// invalid_argument, cuda.
Result<void> check_stream(const Gpu& gpu, Stream stream);

}  // namespace tutti::cuda
