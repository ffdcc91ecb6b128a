// The objects with which a rank's own kernels access the memory of other ranks' GPUs: see GpuPeerCall.
//
// The caller's thread prepares and queues the whole call. The proxy must not: the driver may make some functions wait
// for other streams, and a stream may be waiting for the proxy. The proxy only maps buffers that it has not mapped
// before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "call/request.h"
#include "cuda/engine.h"
#include "cuda/peer_access.h"
#include "cuda/peer_memory.h"
#include "gpu/launch_group.h"
#include "process/gpu_process.h"

namespace tutti {

class Communicator;

class GpuPeers;

/// One call, as its caller prepared it.
struct PeerCallSetup {
  /// A rank's buffers as it describes them to peers, in the payload of its call descriptor.
  struct Buffers {
    cuda::MemoryLine input;
    cuda::MemoryLine output;
  };
  /// A range of the plan's passes with no wait between them.
  struct Kernel {
    std::uint32_t first = 0;  ///< index of its first action
    std::uint32_t count = 0;
  };

  GpuPeers* of = nullptr;
  std::shared_ptr<GpuPlan> plan;
  std::vector<Kernel> kernels;
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 0;  ///< elements of a group
  Buffers own;
  const std::byte* given_input = nullptr;  ///< the caller's buffers
  std::byte* given_output = nullptr;
  const std::byte* input = nullptr;  ///< the buffers that peers and kernels use: the caller's, or copies of them
  std::byte* output = nullptr;
  std::byte* scratch = nullptr;
  std::size_t input_bytes = 0;
  std::size_t output_bytes = 0;
};

class GpuPeers {
 public:
  /// Errors: as cuda::Engine::open.
  static Result<std::shared_ptr<GpuPeers>> open(GpuProcess& process, const cuda::SharedGpu& gpu, Rank rank, int ranks,
                                                cuda::Audience audience);
  /// Waits for running work, at most a second. Memory of work that has not ended then is never freed.
  ~GpuPeers();
  GpuPeers(const GpuPeers&) = delete;
  GpuPeers& operator=(const GpuPeers&) = delete;

  // ---- For the thread that makes calls ----

  /// Prepares a call. May wait for the GPU if the call needs more memory than earlier ones. Errors: cuda, internal.
  Result<std::shared_ptr<const PeerCallSetup>> prepare(Communicator& communicator, const Request& request);
  /// Queues kernel number `kernel` of the call; the first is 1. The context must be current. Errors: cuda.
  Result<void> launch(const PeerCallSetup& setup, std::uint32_t kernel, cuda::Stream stream,
                      const device::PeerBuffers* table);

  /// Calls on different streams share the buffers, so they run one after another: take_turn queues a wait for the last
  /// call before this one, end_turn records the end of this call. The context must be current. Errors: cuda.
  Result<void> take_turn(cuda::Stream stream) const;
  Result<void> end_turn(cuda::Stream stream) const;

  // ---- For the proxy ----

  /// As cuda::PeerMaps::map. Errors: remote, cuda.
  Result<std::byte*> map(Rank rank, const cuda::MemoryLine& descriptor, std::size_t bytes);

  // ---- Any thread ----

  /// Makes kernels that begin from now on do nothing.
  void abort() { engine_->abort(); }
  /// True if all queued work has ended, successfully or not. Errors: cuda (the error of a kernel).
  Result<bool> idle() const { return engine_ ? engine_->idle() : Result<bool>(true); }

 private:
  enum Scratch { input_buffer, output_buffer, plan_scratch, buffer_count };

  GpuPeers(GpuProcess& process, const cuda::SharedGpu& gpu, Rank rank, int ranks, cuda::Audience audience)
      : process_(process),
        gpu_(gpu),
        rank_(rank),
        audience_(std::move(audience)),
        exports_(gpu),
        maps_(process.mapped, gpu, ranks),
        ranks_(ranks) {}
  Result<void> set_up();
  Result<std::byte*> buffer(Scratch which, std::size_t bytes);
  Result<cuda::MemoryLine> locate(Scratch which, const std::byte* at, std::size_t bytes);

  GpuProcess& process_;
  cuda::SharedGpu gpu_;
  Rank rank_;
  const cuda::Audience audience_;
  cuda::Exports exports_;
  cuda::PeerMaps maps_;
  int ranks_;
  std::shared_ptr<cuda::Engine> engine_;
  cuda::OwnEvent ended_;  // of the last call
  std::array<std::shared_ptr<cuda::DeviceMemory>, buffer_count> buffers_;
  std::vector<std::shared_ptr<cuda::DeviceMemory>> outgrown_;  // see cuda::EngineShape::frees_late
};

}  // namespace tutti
