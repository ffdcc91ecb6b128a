// A rank's GPU state in one communicator: its launch group, its plans, and the objects for calls that go through the
// host.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/device_side.h"
#include "cuda/peer_access.h"
#include "cuda/peer_arena.h"
#include "gpu/device_facts.h"
#include "gpu/gpu_choice.h"
#include "gpu/launch_group.h"
#include "gpu/path_history.h"
#include "gpu/stream_order.h"
#include "plan/cache.h"
#include "plan/plan_key.h"
#include "process/gpu_process.h"

namespace tutti {

class Communicator;
class GpuPeers;
class Process;
class BouncePool;
class PeerSharing;
class Stream;

struct GpuContext final : DeviceSide {
  GpuContext(cuda::SharedGpu on, Rank rank) : gpu(std::move(on)), rank_(rank) {}
  ~GpuContext() override;

  void abort() override;
  bool idle() const override;
  std::optional<Error> trouble() const override;
  std::optional<Error> cause() const override;
  Result<void> host_call(bool on_behalf) override;
  void count(const Request& request) override;
  void count(const PeerRequest& request) override;
  std::string explain() const override { return text_of(facts); }
  void explain_ending(Error& error) override;

  static constexpr std::size_t plans_max =
      4096;  // 64 roots of each rooted collective by several algorithms, through slots and windows

  const cuda::SharedGpu gpu;
  /// Of calls that kernels carry out without a plan, and for their reductions (see local_plans.h); made when first
  /// used.
  std::shared_ptr<GpuPlan> no_plan, combine, scale;
  LruCache<PlanKey, std::shared_ptr<GpuPlan>, PlanKeyHash> plans{plans_max};

  /// Cached choice for calls with `bytes` in a group; empty at first.
  GpuChoice& choice(Collective collective, std::size_t bytes, Waiting waiting) {
    auto& choices = choices_[static_cast<std::size_t>(collective)][static_cast<std::size_t>(std::bit_width(bytes))];
    return choices[waiting == Waiting::by_host ? 0 : 1];
  }

  /// Launches the kernels of calls for which none waits for the host, if all ranks share this GPU and process
  /// (LaunchGroup::is_single_launch), or the GPUs' kernels meet. Null: there are no such calls.
  std::shared_ptr<LaunchGroup> launch_group;
  /// By which paths calls on device memory may go.
  DeviceFacts facts;
  std::shared_ptr<PeerSharing> sharing;         ///< null: no kernels access peers' buffers
  std::shared_ptr<GpuPeers> peers;              ///< made by ready_to_stage
  std::atomic<GpuPeers*> peers_made = nullptr;  ///< `peers`, for threads other than the one that makes calls

  // ---- Calls for which the stream waits for the host: by kernels that access peers' memory, and through the host ----

  /// By rank: whether it is in this process and on this GPU; true for this rank.
  std::vector<bool> neighbours;
  std::shared_ptr<StreamOrder> stream_order;
  std::shared_ptr<BouncePool> bounce_pool;  ///< made by ready_to_stage
  std::shared_ptr<Stream> proxy;  ///< host stream that carries these calls out, one after another; made likewise

  bool is_neighbour(Rank rank) const { return neighbours[static_cast<std::size_t>(rank)]; }
  /// Makes `peers`, `bounce_pool` and `proxy` where still missing. Errors: invalid_usage (streams of this GPU cannot
  /// wait for memory), cuda, system.
  Result<void> ready_to_stage(Process& process);
  /// The number of this rank's next receive from `peer`, which matches the send with the same number.
  std::uint64_t next_receive(Rank peer) { return ++received_[static_cast<std::size_t>(peer)]; }
  /// Counts a collective on host memory: neighbours number all collectives alike.
  void count_collective() { stream_order->collective(rank_, /*host_staged=*/false); }

  /// A collective of this rank is queued as a kernel, or goes through the host: see PathHistory.
  void note_kernel();
  void note_host() {
    if (!paths_.empty()) paths_[static_cast<std::size_t>(rank_)]->add(/*by_host=*/true);
  }
  /// A send or receive of this rank is queued: the same.
  void note_message(const PeerRequest& request, bool by_host);
  /// It has been launched, perhaps in a capture.
  void note_launched(const PeerRequest& request);
  /// By rank.
  void compare_paths(std::vector<PathHistory*> calls, std::vector<MessagePathHistory*> messages) {
    paths_ = std::move(calls);
    message_paths_ = std::move(messages);
  }

  /// The context's streams wait for the host: see GpuProcess::enter_waiting.
  void waits(std::shared_ptr<const void> entered) { waiting_ = std::move(entered); }

  /// The communicator is destroyed. Destroys the proxy if `idle`, otherwise keeps it until the process ends; graphs
  /// that are left are watched.
  void leave(const Communicator& communicator, bool idle);

  /// Sets the neighbours and who accesses this rank's memory, and enters this rank into the order that neighbours
  /// share.
  void enter(std::vector<bool> by_rank, cuda::Audience audience, std::shared_ptr<StreamOrder> order);

 private:
  std::optional<Error> different_paths() const;
  std::optional<Error> different_message_paths(Rank peer, bool send) const;

  const Rank rank_;
  std::vector<PathHistory*> paths_;  ///< by rank, in shared memory; empty: kernels meet none of other launches
  std::vector<MessagePathHistory*> message_paths_;  ///< likewise
  cuda::Audience audience_;
  std::atomic<bool> aborted_ = false;
  std::atomic<bool> awaited_ = false;  // kernels have been waited for after a failure
  std::shared_ptr<const void> waiting_;
  std::array<std::array<std::array<GpuChoice, 2>, 65>, collective_count> choices_{};
  std::vector<std::uint64_t> received_;
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

}  // namespace tutti
