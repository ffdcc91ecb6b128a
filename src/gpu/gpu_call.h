// One collective on device memory: this rank's plan, the meeting with the other ranks, and then it is queued.
#pragma once

#include <string>

#include "call/held_operation.h"
#include "call/request.h"
#include "comm/communicator.h"
#include "gpu/gpu_context.h"

namespace tutti {

/// Done once it is queued on the rank's stream; nothing waits for the GPU.
class GpuCall final : public Operation {
 public:
  /// Both must outlive the call; the request's turn must have come, and the communicator has a team.
  GpuCall(Communicator& communicator, const Request& request, cuda::Stream stream)
      : communicator_(communicator), request_(request), stream_(stream) {}
  ~GpuCall() override;

  Result<Progress> advance() override;
  Communicator* communicator() override { return &communicator_; }

  /// Errors: remote (a rank left), timeout (this thread waits for ranks that it drives itself).
  Result<void> poll_peers() override;
  std::string where() const override;

 private:
  LaunchGroup& team() const { return *gpu_context(communicator_)->launch_group; }

  Communicator& communicator_;
  const Request& request_;
  cuda::Stream stream_;
  std::shared_ptr<GpuPlan> plan_;
  bool arrived_ = false;
  std::int64_t since_ns_ = 0;
};

/// A request that kernels of ranks that share a GPU carry out, on `stream`.
class KernelCall final : public DeviceCall {
 public:
  explicit KernelCall(cuda::Stream stream) : stream_(stream) {}

  void make(HeldOperation& made, Communicator& communicator, Request& request) override {
    made.emplace<GpuCall>(communicator, request, stream_);
  }
  bool through_host() const override { return false; }

 private:
  cuda::Stream stream_;
};

}  // namespace tutti
