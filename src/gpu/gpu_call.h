// One collective on device memory: this rank's plan, the meeting with the other ranks, and then it is queued.
#pragma once

#include <string>

#include "call/operation.h"
#include "call/request.h"
#include "comm/communicator.h"
#include "gpu/gpu_context.h"

namespace tutti {

/// Done once it is queued on the rank's stream; nothing waits for the GPU.
class GpuCall final : public Operation {
 public:
  /// Both must outlive the call; the request's turn must have come, and the communicator has a team.
  GpuCall(Communicator& communicator, const Request& request) : communicator_(communicator), request_(request) {}
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
  std::shared_ptr<GpuPlan> plan_;
  bool arrived_ = false;
  std::int64_t since_ns_ = 0;
};

}  // namespace tutti
