// What a rank needs to reach the memory of other ranks' GPUs by kernels of its own: see GpuPeerCall.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/gpu_process.h"
#include "cuda/engine.h"
#include "cuda/peer_memory.h"

namespace tutti {

/// Used by one thread at a time; the GPU's context is current, but for settled().
class GpuPeers {
 public:
  /// Errors: as cuda::Engine::open.
  static Result<std::shared_ptr<GpuPeers>> open(GpuProcess& process, const cuda::SharedGpu& gpu, Rank rank, int ranks);
  /// Waits for what runs, at most a second; what does not end keeps its memory for ever.
  ~GpuPeers();
  GpuPeers(const GpuPeers&) = delete;
  GpuPeers& operator=(const GpuPeers&) = delete;

  cuda::Exports exports;
  cuda::PeerMaps maps;

  cuda::Engine& engine() { return *engine_; }

  /// At least `bytes` that peers can map, in the place of a call's input or output.
  enum class Room { input, output };
  Result<std::byte*> room(Room which, std::size_t bytes);

  /// Both queue; nothing waits.
  Result<void> copy(std::byte* to, const std::byte* from, std::size_t bytes);
  Result<void> launch(const cuda::Job& job, cuda::Part part, std::span<const device::PeerBuffers> buffers);

  /// All that was queued has ended. Any thread, with the owner's calls in order. Errors: cuda (what it ended with).
  Result<bool> settled() const;

 private:
  GpuPeers(GpuProcess& process, const cuda::SharedGpu& gpu, int ranks)
      : exports(gpu), maps(gpu, ranks), process_(process), gpu_(gpu) {}
  Result<void> mark();

  GpuProcess& process_;
  cuda::SharedGpu gpu_;
  std::shared_ptr<cuda::Engine> engine_;
  cuda::OwnStream stream_;
  cuda::OwnEvent queued_;
  std::shared_ptr<cuda::DeviceMemory> rooms_[2];
  std::vector<std::shared_ptr<cuda::DeviceMemory>> outgrown_;  // see cuda::EngineShape::frees_late
};

}  // namespace tutti
