// One collective on device memory of ranks whose GPUs reach each other's memory: several processes, several GPUs.
//
// The plan is that of windows. Its passes are kernels, queued on the caller's stream, each behind a wait for the host;
// its flags are those of the host's shared memory. This, on the proxy, is the host's part: it lets a kernel go when all
// that the plan has it wait for is here, and tells peers when one has ended. No kernel waits, so processes may share a
// GPU, and whatever fails, fails as calls on host memory do.
#pragma once

#include <string>
#include <vector>

#include "call/operation.h"
#include "call/request.h"
#include "comm/communicator.h"
#include "gpu/gpu_context.h"
#include "gpu/gpu_peers.h"
#include "gpu/host_staged_call.h"

namespace tutti {

/// Begins when what the stream held before the call has ended; done when the output is there.
class GpuPeerCall final : public Operation {
 public:
  /// All three must outlive the operation; the request's turn must have come, and it has been prepared.
  GpuPeerCall(Communicator& communicator, const Request& request, const HostStagedCall& call)
      : communicator_(communicator), request_(request), call_(call), setup_(*call.peers()) {}

  Result<Progress> advance() override;
  Communicator* communicator() override { return &communicator_; }

  /// Errors: invalid_usage (a mismatch), remote (a rank left), cuda (what a kernel ended with).
  Result<void> poll_peers() override;
  std::string where() const override;

  std::int64_t poll_set(std::vector<PollItem>& items) const override;

 private:
  enum class State { begin, publish, gather, run, done };

  Result<bool> step();
  Result<bool> publish();
  Result<bool> gather();
  Result<void> map_buffers();
  Result<void> map_buffer(const Place& place);
  bool run();
  std::size_t bytes_of(Rank rank, bool input) const;

  Communicator& communicator_;
  const Request& request_;
  const HostStagedCall& call_;
  const PeerCallSetup& setup_;
  State state_ = State::begin;
  std::uint64_t sequence_ = 0;
  Rank gathered_ = 0;
  std::uint32_t next_ = 0;    ///< of the plan's actions
  std::uint32_t kernel_ = 0;  ///< the last one that was let go
  bool busy_ = false;         ///<   and was not seen to end
};

}  // namespace tutti
