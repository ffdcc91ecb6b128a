// What a pointer of a caller's points to, and whether a stream is of the GPU meant: asked of the driver, call by call.
#pragma once

#include "base/error.h"
#include "cuda/resources.h"

namespace tutti::cuda {

/// managed: moves between host and GPU by itself; pinned host memory counts as host.
enum class MemoryKind { host, device, managed };

struct PointerFacts {
  MemoryKind kind = MemoryKind::host;
  Ordinal device = -1;  ///< of device memory
};

/// Memory that the driver does not know is the host's. Errors: cuda.
Result<PointerFacts> look_at(const Driver& driver, const void* pointer);

/// Whether the buffers of a call, those that are not null, are memory of `gpu`'s; false: of the host.
/// Errors: invalid_argument (one of each; another GPU's), cuda.
Result<bool> on_gpu(const Gpu& gpu, const void* sendbuff, const void* recvbuff);

/// Whether work on `gpu` may be queued on `stream`; the default streams are of any. Errors: invalid_argument, cuda.
Result<void> check_stream(const Gpu& gpu, Stream stream);

}  // namespace tutti::cuda
