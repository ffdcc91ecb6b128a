// One collective on device memory that kernels carry out: prepares this rank's plan and joins the launch group.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "call/held_operation.h"
#include "call/request.h"
#include "comm/communicator.h"
#include "cuda/shared_buffers.h"
#include "gpu/gpu_context.h"

namespace tutti {

/// Done once the call is queued on the rank's stream. Never waits for the GPU.
class GpuCall final : public Operation {
 public:
  /// `communicator` and `request` must outlive the call. The request's turn must have come, and the communicator must
  /// have a launch group.
  GpuCall(Communicator& communicator, const Request& request) : communicator_(communicator), request_(request) {}
  ~GpuCall() override;

  Result<Progress> advance() override;
  Communicator* communicator() override { return &communicator_; }

  /// Errors: remote (a rank left), timeout (this thread waits for a rank that it drives itself).
  Result<void> poll_peers() override;
  std::string where() const override;
  Rank waits_for() const override;

 private:
  LaunchGroup& launch_group() const { return *gpu_context(communicator_)->launch_group; }
  Result<void> arrive();
  void exchange(GpuOffer& offer);
  void reduce_locally(GpuOffer& offer);
  Result<void> offer_windows(GpuOffer& offer);

  Communicator& communicator_;
  const Request& request_;
  std::shared_ptr<GpuPlan> plan_;
  std::shared_ptr<GpuPlan> windows_;
  std::vector<std::shared_ptr<cuda::SharedBuffer>> offered_;
  std::vector<device::Transfer> transfers_;  ///< by peer, with a count per rank
  bool arrived_ = false;
  std::int64_t since_ns_ = 0;
};

}  // namespace tutti
