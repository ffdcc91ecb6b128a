// The objects with which a rank's own kernels access the memory of other ranks' GPUs: see GpuPeerCall.
//
// The caller's thread prepares and queues the whole call. The proxy must not call the driver: the driver may make it
// wait for other streams, and a stream may be waiting for the proxy. What needs the driver later is the driver thread's
// work: see PeerSharing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "call/request.h"
#include "cuda/engine.h"
#include "cuda/peer_access.h"
#include "gpu/launch_group.h"
#include "gpu/peer_sharing.h"
#include "process/gpu_process.h"

namespace tutti {

class Communicator;

class GpuPeers;
struct GpuContext;

/// One call, as its caller prepared it.
struct PeerCallSetup {
  /// A rank's buffers as it describes them to peers, in the payload of its call descriptor.
  struct Buffers {
    cuda::SharedLocation input;
    cuda::SharedLocation output;
  };
  /// One of the call's buffers on this rank, and what peers and kernels use in its place.
  struct Side {
    std::byte* given = nullptr;  ///< the caller's; only read if it is the input
    std::size_t bytes = 0;
    std::byte* used = nullptr;                      ///< the caller's buffer, or a copy
    bool copied = false;                            ///< peers cannot access the caller's buffer, or must not
    std::optional<cuda::SharedBuffer> shared = {};  ///< of the caller's buffer or its copy, for other processes
    cuda::SharedLocation location = {};             ///< of `used`
  };
  /// A range of the plan's passes with no wait between them.
  struct Kernel {
    std::uint32_t first = 0;  ///< index of its first action
    std::uint32_t count = 0;
  };

  GpuPeers* of = nullptr;
  std::shared_ptr<GpuPlan> plan;
  std::vector<Kernel> kernels;
  cuda::CollectiveJob job;  ///< of each kernel, but for its table
  Side input;
  Side output;
  bool chosen = false;  ///< which buffers are used is final
  std::byte* scratch = nullptr;
};

class GpuPeers {
 public:
  /// Of a rank with a PeerSharing. Errors: as cuda::Engine::open.
  static Result<std::shared_ptr<GpuPeers>> open(GpuProcess& process, const GpuContext& context);
  /// Waits for running work, at most a second. Memory of work that has not ended then is never freed.
  ~GpuPeers();
  GpuPeers(const GpuPeers&) = delete;
  GpuPeers& operator=(const GpuPeers&) = delete;

  // ---- For the thread that makes calls ----

  /// Prepares a call. May wait for the GPU if the call needs more memory than earlier ones. Errors: cuda, internal.
  Result<std::shared_ptr<PeerCallSetup>> prepare(Communicator& communicator, const Request& request);
  /// Chooses what peers access: the caller's buffers once all peers have mapped them, until then the arena. False: the
  /// call is too large for the arena; try again later. The context must be current. Errors: cuda.
  Result<bool> choose_buffers(PeerCallSetup& setup);
  /// Queues kernel number `kernel` of the call; the first is 1. The context must be current. Errors: cuda.
  Result<void> launch(const PeerCallSetup& setup, std::uint32_t kernel, cuda::Stream stream,
                      const device::PeerBuffers* table);

  /// Calls on different streams share the buffers, so they run one after another: take_turn queues a wait for the last
  /// call before this one, end_turn records the end of this call. The context must be current. Errors: cuda.
  Result<void> take_turn(cuda::Stream stream) const { return gpu_->follow(stream, ended_.get()); }
  Result<void> end_turn(cuda::Stream stream) const { return gpu_->record(ended_.get(), stream); }

  // ---- Any thread ----

  /// Makes kernels that begin from now on do nothing.
  void abort() { engine_->failures().abort(); }
  /// True if all queued work has ended, successfully or not. Errors: cuda (the error of a kernel).
  Result<bool> idle() const { return engine_ ? engine_->idle() : Result<bool>(true); }

 private:
  enum Scratch { input_buffer, output_buffer, plan_scratch, buffer_count };

  GpuPeers(GpuProcess& process, const GpuContext& context);
  Result<std::byte*> buffer(Scratch which, std::size_t bytes);
  Result<bool> show_here(Scratch which, PeerCallSetup::Side& side);
  Result<bool> show(Scratch which, PeerCallSetup::Side& side);

  GpuProcess& process_;
  cuda::SharedGpu gpu_;
  Rank rank_;
  int ranks_;
  const cuda::Audience audience_;
  const std::shared_ptr<PeerSharing> sharing_;
  std::shared_ptr<cuda::Engine> engine_;
  cuda::OwnEvent ended_;  // of the last call
  std::array<std::shared_ptr<cuda::DeviceMemory>, buffer_count> buffers_;
  std::vector<std::shared_ptr<cuda::DeviceMemory>> outgrown_;  // see cuda::EngineShape::frees_late
};

}  // namespace tutti
