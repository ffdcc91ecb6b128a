// Puts plans into the memory of a GPU.
#pragma once

#include <memory>
#include <vector>

#include "cuda/job.h"
#include "cuda/resources.h"

namespace tutti::cuda {

class PlanUploads {
 public:
  PlanUploads() = default;
  /// The context must be current. Errors: cuda.
  static Result<PlanUploads> make(const SharedGpu& gpu, const EngineShape& shape);

  /// Copies the plan to the GPU. With EngineShape::frees_late it does not wait for the copy; see follow. Errors: cuda.
  Result<std::shared_ptr<const DevicePlan>> upload(const Plan& plan);
  /// The copies precede what `stream` gets from now on. If it is captured, waits for them: a graph is replayed without
  /// them. The context must be current. Errors: cuda.
  Result<void> follow(Stream stream, bool captured);

  /// Of no call's: what the copies are queued on.
  Stream stream() const { return stream_.get(); }

 private:
  struct Buffer {
    DeviceMemory memory;
    PinnedMemory mirror;  // the same bytes, from where they are copied
  };
  Result<std::size_t> take(std::size_t bytes);

  SharedGpu gpu_;
  bool synchronises_ = false;
  bool frees_late_ = false;
  std::vector<Buffer> buffers_;  // with frees_late; the last one is used up to used_
  std::size_t used_ = 0;
  OwnStream stream_;
  OwnEvent uploaded_;  // the last plan
  bool pending_ = false;
};

}  // namespace tutti::cuda
