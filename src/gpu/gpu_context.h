// A rank's GPU state in one communicator: its launch group, its plans, and the objects for calls that go through the
// host.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "comm/device_side.h"
#include "cuda/peer_access.h"
#include "cuda/virtual_memory.h"
#include "gpu/bounce_buffer.h"
#include "gpu/device_facts.h"
#include "gpu/gpu_peers.h"
#include "gpu/launch_group.h"
#include "gpu/path_comparison.h"
#include "gpu/stream_order.h"
#include "plan/cache.h"
#include "process/gpu_process.h"

namespace tutti {

class Communicator;
class PeerSharing;
class Process;
class Stream;
struct GpuContext;

/// The plans of calls that kernels carry out, and what was chosen for them.
struct GpuPlans {
  static constexpr std::size_t kept =
      4096;  // 64 roots of each rooted collective by several algorithms, through slots and windows

  /// Of calls that kernels carry out without a plan, and for their reductions (see GpuCall); made when first used.
  std::shared_ptr<GpuPlan> none, combine, scale;
  LruCache<PlanKey, std::shared_ptr<GpuPlan>, PlanKeyHash> cache{kept};

  /// Cached choice for calls with `bytes` in a group; empty at first.
  GpuChoice& choice(Collective collective, std::size_t bytes, Waiting waiting) {
    auto& choices = choices_[static_cast<std::size_t>(collective)][static_cast<std::size_t>(std::bit_width(bytes))];
    return choices[waiting == Waiting::by_host ? 0 : 1];
  }

 private:
  std::array<std::array<std::array<GpuChoice, 2>, 65>, collective_count> choices_{};
};

/// What calls need for which their streams wait for the host, made when the first one is.
class Staging {
 public:
  /// Makes what is missing for the calls of `context`. Errors: invalid_usage (streams of this GPU cannot wait for
  /// memory), cuda, system.
  Result<void> make(Process& process, const GpuContext& context);
  /// Whether all that was queued has ended. Any thread.
  bool idle() const;
  /// Kernels end soon. Any thread.
  void abort();

  GpuPeers& peers() const { return *peers_; }
  const std::shared_ptr<BouncePool>& pool() const { return pool_; }
  /// The host stream that carries these calls out, one after another.
  const std::shared_ptr<Stream>& proxy() const { return proxy_; }
  void end_proxy() { proxy_.reset(); }

 private:
  std::shared_ptr<GpuPeers> peers_;
  std::atomic<GpuPeers*> peers_made_ = nullptr;  // `peers_`, for threads other than the one that makes calls
  std::atomic<bool> aborted_ = false;
  std::shared_ptr<BouncePool> pool_;
  std::shared_ptr<Stream> proxy_;
};

struct GpuContext final : DeviceSide {
  GpuContext(cuda::SharedGpu on, Rank rank) : gpu(std::move(on)), paths(rank) {}
  ~GpuContext() override;

  void abort() override;
  bool idle() const override;
  std::optional<Error> trouble() const override;
  std::optional<Error> cause() const override;
  Result<void> host_call(bool on_behalf) override;
  void count(const Request& request) override;
  void count(const PeerRequest& request) override;
  std::string explain() const override;
  void explain_ending(Error& error) override;

  const cuda::SharedGpu gpu;
  GpuPlans plans;

  /// Launches the kernels of calls for which none waits for the host, if all ranks share this GPU and process
  /// (LaunchGroup::is_single_launch), or the GPUs' kernels synchronise. Null: there are no such calls.
  std::shared_ptr<LaunchGroup> launch_group;
  /// By which paths calls on device memory may go.
  DeviceFacts facts;
  std::shared_ptr<PeerSharing> sharing;  ///< null: no kernels access peers' buffers
  PathComparison paths;
  std::optional<GpuNeighbours> neighbours;

  // ---- Calls for which the stream waits for the host: by kernels that access peers' memory, and through the host ----

  Staging staging;
  std::shared_ptr<const void> waiting;  ///< if the context's streams wait for the host: see WaitingStreams
  cuda::Audience audience;              ///< who accesses this rank's memory

  /// The communicator is destroyed. Destroys the proxy if `idle`, otherwise keeps it until the process ends; graphs
  /// that are left are watched.
  void leave(const Communicator& communicator, bool idle);

 private:
  std::atomic<bool> awaited_ = false;  // kernels have been waited for after a failure
};

/// What the start has found out about GPUs.
struct GpuStart {
  std::shared_ptr<cuda::PeerArena> arena;  ///< see GpuProof; null: not all GPUs reach each other's memory
  std::shared_ptr<LaunchGroup> meets;      ///< of this rank; null: not all kernels have met
};

/// Attaches a GpuContext to the communicator if this rank has a GPU. Errors: system (no thread).
Result<void> make_gpu_context(Communicator& communicator, GpuStart start);

/// Null if this rank has no GPU.
GpuContext* gpu_context(const Communicator& communicator);

/// A rank's plan of a call on device memory: chooses it, and makes it on first use. `waiting` is by_host, or the same
/// in all calls of a communicator.
std::shared_ptr<GpuPlan> plan_on_gpu(Communicator& communicator, const Request& request, Waiting waiting);

/// When the host polls the words that a GPU writes next: a GPU rings no doorbell.
std::int64_t next_gpu_poll_ns(const Communicator& communicator);

}  // namespace tutti
