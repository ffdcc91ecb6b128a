// One collective on device memory of ranks whose GPUs reach each other's memory: several processes, several GPUs.
//
// The plan uses windows. Its passes are kernels queued on the caller's stream, each behind a wait for the host. Its
// flags lie in the host's shared memory. GpuPeerCall, on the proxy, is the host's part: it releases a kernel when all
// flags that the plan waits for before it are raised, and raises flags for peers when a kernel has ended. No kernel
// waits, so processes may share a GPU, and failures are handled as for calls on host memory.
#pragma once

#include <string>
#include <vector>

#include "call/operation.h"
#include "call/request.h"
#include "comm/communicator.h"
#include "gpu/gpu_context.h"
#include "gpu/released_call.h"

namespace tutti {

/// Begins when the stream's work before the call has ended; done when the output is complete.
class GpuPeerCall final : public Operation {
 public:
  /// All three must outlive the operation. The request's turn must have come, and the call must have been prepared.
  GpuPeerCall(Communicator& communicator, const Request& request, const ReleasedCall& call)
      : communicator_(communicator), request_(request), call_(call), setup_(call.setup()) {}

  Result<Progress> advance() override;
  Communicator* communicator() override { return &communicator_; }

  /// Errors: invalid_usage (a mismatch), remote (a rank left), cuda (the error of a kernel).
  Result<void> poll_peers() override;
  std::string where() const override;
  Rank waits_for() const override;

  std::int64_t poll_set(std::vector<PollItem>& items) const override;

 private:
  enum class State { begin, publish, gather, run, done };

  Result<bool> step();
  Result<bool> publish();
  Result<bool> gather();
  Result<void> find_buffers();
  Result<void> find_buffer(const Place& place);
  bool run();
  std::size_t bytes_of(Rank rank, bool input) const;

  Communicator& communicator_;
  const Request& request_;
  const ReleasedCall& call_;
  const PeerCallSetup& setup_;
  State state_ = State::begin;
  std::uint64_t sequence_ = 0;
  Rank gathered_ = 0;
  std::uint32_t next_ = 0;    ///< index into the plan's actions
  std::uint32_t kernel_ = 0;  ///< last kernel released
  bool busy_ = false;         ///< kernel_ has not been seen to end
};

}  // namespace tutti
