// One collective on device memory of ranks whose GPUs reach each other's memory: several processes, several GPUs.
//
// The plan is that of windows. Its passes are kernels of this rank's GPU, its flags those of the host's shared memory:
// no kernel waits, so ranks of several processes may share a GPU, and whatever fails, fails as calls on host memory do.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/gpu_peers.h"
#include "comm/gpu_seat.h"
#include "comm/operation.h"
#include "comm/request.h"

namespace tutti {

/// Runs when what the stream held before the call has ended; done when the output is there.
class GpuPeerCall final : public Operation {
 public:
  /// Both must outlive the call; the request's turn must have come.
  GpuPeerCall(Communicator& communicator, const Request& request)
      : communicator_(communicator),
        request_(request),
        peers_(*communicator.gpu()->peers),
        buffers_(static_cast<std::size_t>(communicator.ranks())) {}

  Result<Progress> advance() override;
  Communicator* communicator() override { return &communicator_; }

  /// Errors: invalid_usage (a mismatch), remote (a rank left).
  Result<void> look_around() override;
  std::string where() const override;

  /// The GPU rings no bell when it is done.
  bool awaits_gpu() const { return busy_; }

 private:
  enum class Stage { prepare, publish, gather, run, bring_back, done };

  /// How ranks name their buffers to each other: in the payload of the call line.
  struct Buffers {
    cuda::MemoryLine input;
    cuda::MemoryLine output;
  };

  Result<bool> step();
  Result<bool> settled();
  Result<bool> prepare();
  Result<void> name_buffers();
  Result<cuda::MemoryLine> locate(GpuPeers::Room room, const std::byte* at, std::size_t bytes);
  Result<bool> publish();
  Result<bool> gather();
  Result<void> map_buffers();
  Result<void> map_buffer(const Place& place);
  Result<bool> run();
  Result<void> launch_passes();
  Result<bool> bring_back();
  std::size_t bytes_of(Rank rank, bool input) const;
  bool has_strangers() const;

  Communicator& communicator_;
  const Request& request_;
  GpuPeers& peers_;
  Stage stage_ = Stage::prepare;
  std::uint64_t sequence_ = 0;
  GpuPlan* plan_ = nullptr;
  Buffers own_;
  const std::byte* input_ = nullptr;  ///< as peers and kernels see them: the caller's, or room in their place
  std::byte* output_ = nullptr;
  std::vector<device::PeerBuffers> buffers_;  ///< by rank; null: the plan does not touch them
  Rank gathered_ = 0;
  std::uint32_t next_ = 0;  ///< of the plan's actions
  bool busy_ = false;       ///< something was queued, and was not seen to end
};

}  // namespace tutti
