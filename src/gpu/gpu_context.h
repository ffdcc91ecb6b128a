// What a rank has of its GPU: its place among the others, its plans, and what calls that go through the host need.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/device_side.h"
#include "gpu/gpu_choice.h"
#include "gpu/launch_group.h"
#include "gpu/stream_order.h"
#include "plan/cache.h"
#include "plan/plan_key.h"
#include "process/gpu_process.h"

namespace tutti {

class Communicator;
class GpuPeers;
class Process;
class BouncePool;
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
  std::string explain() const override;

  static constexpr std::size_t plans_max = 1024;  // 64 roots of each rooted collective by several algorithms

  const cuda::SharedGpu gpu;
  LruCache<PlanKey, std::shared_ptr<GpuPlan>, PlanKeyHash> plans{plans_max};

  /// Of calls with so many bytes in a group; empty at first.
  GpuChoice& choice(Collective collective, std::size_t bytes) {
    return choices_[static_cast<std::size_t>(collective)][static_cast<std::size_t>(std::bit_width(bytes))];
  }

  /// Null: calls go through the host, as not all ranks share this GPU and process, or a setting says so.
  std::shared_ptr<LaunchGroup> launch_group;

  /// All ranks are of this host, and their GPUs have proven to reach each other: then plain collectives go that way.
  bool reaches_peers = false;
  std::shared_ptr<GpuPeers> peers;              ///< from the first such call on, as is what the next part has
  std::atomic<GpuPeers*> peers_made = nullptr;  ///< the same, for other threads than the one that makes calls

  // ---- Calls that go through the host ----

  /// Ranks of this process on this GPU, by rank, this one among them.
  std::vector<bool> neighbours;
  std::shared_ptr<StreamOrder> stream_order;
  std::shared_ptr<BouncePool> bounce_pool;  ///< from the first such call on, as is
  std::shared_ptr<Stream> proxy;            ///<   what carries them out on the host, one after another

  bool is_neighbour(Rank rank) const { return neighbours[static_cast<std::size_t>(rank)]; }
  /// Makes all if need be. Errors: invalid_usage (streams of this GPU cannot wait for memory), cuda, system.
  Result<void> ready_to_stage(Process& process);
  /// The number of this rank's next receive from `peer`: meets the send of that number.
  std::uint64_t next_receive(Rank peer) { return ++received_[static_cast<std::size_t>(peer)]; }
  /// Of calls on host memory, which neighbours count too.
  void count_collective() { stream_order->collective(rank_, /*host_staged=*/false); }

  /// The proxy is given up: waited for where it is idle, else left to itself.
  void leave(Process& process, bool idle);

  /// Where this rank sits: who the neighbours are.
  void sit(std::vector<bool> around, std::shared_ptr<StreamOrder> with);

 private:
  const Rank rank_;
  std::array<std::array<GpuChoice, 65>, collective_count> choices_{};
  std::vector<std::uint64_t> received_;
};

/// Gives a communicator whose rank has a GPU its place there, among the ranks of its process and host.
void make_gpu_context(Communicator& communicator);

/// Null where this rank has no GPU.
GpuContext* gpu_context(const Communicator& communicator);

}  // namespace tutti
