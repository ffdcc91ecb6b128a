// Sends and receives on device memory that a kernel carries out, which synchronises with those of their peers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "call/held_operation.h"
#include "call/request.h"
#include "comm/communicator.h"
#include "cuda/engine.h"

namespace tutti {

/// The sends and receives of one group, concurrent over all peers and both directions. Done once they are queued on
/// their streams. Never waits for the GPU.
class GpuMessages final : public Operation {
 public:
  /// Both must outlive the operation. All requests are synchronising. The communicator must have a launch group in
  /// which this rank is alone.
  GpuMessages(Communicator& communicator, std::span<const PeerRequest> requests)
      : communicator_(communicator), requests_(requests) {}

  /// Errors: invalid_usage (messages of this rank to itself that differ), cuda.
  Result<Progress> advance() override;
  Communicator* communicator() override { return &communicator_; }
  std::string where() const override { return "the launch of a kernel"; }

 private:
  std::vector<cuda::Stream> streams() const;
  std::vector<device::Message> to_peers() const;
  Result<std::vector<cuda::MessagesJob::Copy>> to_self() const;

  Communicator& communicator_;
  std::span<const PeerRequest> requests_;
};

}  // namespace tutti
