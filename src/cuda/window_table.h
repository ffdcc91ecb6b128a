// Where this rank's kernels find the allocations that peers may offer them, in the GPU's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cuda/resources.h"

namespace tutti::cuda {

class WindowTable {
 public:
  /// With nothing in it. Errors: cuda.
  static Result<std::unique_ptr<WindowTable>> make(const SharedGpu& gpu, int ranks);

  /// Kernels find the allocation of `rank` at `place` of its board there, once they have met that rank. Waits for the
  /// GPU. The context must be current. Errors: cuda.
  Result<void> set(int rank, std::uint32_t place, std::byte* at);

  /// For device::ByWindows.
  std::byte* const* data() const { return reinterpret_cast<std::byte* const*>(memory_.data()); }

 private:
  explicit WindowTable(SharedGpu gpu) : gpu_(std::move(gpu)) {}

  SharedGpu gpu_;
  OwnStream stream_;
  PinnedMemory word_;
  DeviceMemory memory_;
};

}  // namespace tutti::cuda
