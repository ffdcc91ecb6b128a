// Whether GPUs of one process may access a buffer that another of its GPUs holds.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cuda/resources.h"

namespace tutti::cuda {

/// Who besides its owner accesses a rank's memory.
struct Audience {
  bool processes = false;     ///< other processes
  std::vector<Ordinal> gpus;  ///< the other GPUs that ranks of this process use
};

/// True if kernels on all GPUs in `others` may read and write the buffer of `bytes` at `at`, which is memory of `gpu`.
/// Memory of cuMemAlloc, and managed memory, is open to every GPU with access to `gpu`, which the caller must have
/// proven. Memory of pools, and ranges that the program maps itself, have rights of their own, which may change at any
/// time: they are asked for. The context must be current. Errors: cuda (sticky errors only).
Result<bool> is_open_to(const Gpu& gpu, const std::byte* at, std::size_t bytes, std::span<const Ordinal> others);

}  // namespace tutti::cuda
