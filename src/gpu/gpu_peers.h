// What a rank needs to reach the memory of other ranks' GPUs by kernels of its own: see GpuPeerCall.
//
// Whoever makes a call prepares and queues all of it, as the driver may have some functions wait for other streams, and
// a stream may be waiting for what the proxy has still to say. That one only maps what it has not seen before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "call/request.h"
#include "cuda/engine.h"
#include "cuda/peer_memory.h"
#include "gpu/launch_group.h"
#include "process/gpu_process.h"

namespace tutti {

class Communicator;

class GpuPeers;

/// One call as its caller prepared it.
struct PeerCallSetup {
  /// How ranks name their buffers to each other: in the payload of the call descriptor.
  struct Buffers {
    cuda::MemoryLine input;
    cuda::MemoryLine output;
  };
  /// Passes of the plan with no wait between them.
  struct Kernel {
    std::uint32_t first = 0;  ///< action
    std::uint32_t count = 0;
  };

  GpuPeers* of = nullptr;
  std::shared_ptr<GpuPlan> plan;
  std::vector<Kernel> kernels;
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 0;  ///< elements of a group
  Buffers own;
  const std::byte* given_input = nullptr;  ///< the caller's,
  std::byte* given_output = nullptr;
  const std::byte* input = nullptr;  ///<   and as peers and kernels see them: those, or room in their place
  std::byte* output = nullptr;
  std::byte* scratch = nullptr;
  std::size_t input_bytes = 0;
  std::size_t output_bytes = 0;
};

class GpuPeers {
 public:
  /// Errors: as cuda::Engine::open.
  static Result<std::shared_ptr<GpuPeers>> open(GpuProcess& process, const cuda::SharedGpu& gpu, Rank rank, int ranks);
  /// Waits for what runs, at most a second; what does not end keeps its memory for ever.
  ~GpuPeers();
  GpuPeers(const GpuPeers&) = delete;
  GpuPeers& operator=(const GpuPeers&) = delete;

  // ---- Of the thread that makes calls ----

  /// May wait for the GPU where it needs more memory than before. Errors: cuda, internal.
  Result<std::shared_ptr<const PeerCallSetup>> prepare(Communicator& communicator, const Request& request);
  /// Queues kernel `kernel` of the call, from 1. The context is current. Errors: cuda.
  Result<void> launch(const PeerCallSetup& setup, std::uint32_t kernel, cuda::Stream stream,
                      const device::PeerBuffers* table);

  /// Calls on different streams take turns in the rooms: queues a wait for the last call before this one, and says
  /// when this one has ended. The context is current. Errors: cuda.
  Result<void> take_turn(cuda::Stream stream) const;
  Result<void> end_turn(cuda::Stream stream) const;

  // ---- Of the one that carries them out ----

  /// Errors: remote, cuda.
  Result<std::byte*> map(Rank rank, const cuda::MemoryLine& line, std::size_t bytes);

  // ---- Any thread ----

  /// Kernels that begin from now on do nothing.
  void abort() { engine_->abort(); }
  /// What was queued has ended, one way or another. Errors: cuda (what it ended with).
  Result<bool> idle() const { return engine_ ? engine_->idle() : Result<bool>(true); }

 private:
  enum Scratch { input_buffer, output_buffer, plan_scratch, buffer_count };

  GpuPeers(GpuProcess& process, const cuda::SharedGpu& gpu, Rank rank, int ranks)
      : process_(process), gpu_(gpu), rank_(rank), exports_(gpu), maps_(process.mapped, gpu, ranks), ranks_(ranks) {}
  Result<void> set_up();
  Result<std::byte*> buffer(Scratch which, std::size_t bytes);
  Result<cuda::MemoryLine> locate(Scratch which, const std::byte* at, std::size_t bytes, bool strangers);

  GpuProcess& process_;
  cuda::SharedGpu gpu_;
  Rank rank_;
  cuda::Exports exports_;
  cuda::PeerMaps maps_;
  int ranks_;
  std::shared_ptr<cuda::Engine> engine_;
  cuda::OwnEvent ended_;  // the last call
  std::array<std::shared_ptr<cuda::DeviceMemory>, buffer_count> buffers_;
  std::vector<std::shared_ptr<cuda::DeviceMemory>> outgrown_;  // see cuda::EngineShape::frees_late
};

}  // namespace tutti
