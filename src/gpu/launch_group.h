// The ranks of a communicator that share a GPU and a process launch together: each rank waits on the host, and the last
// rank to arrive launches for all. A rank that is alone waits for nobody.
//
// If the communicator has ranks in other groups, the kernels of its groups wait for each other on the GPUs.
//
// A kernel that waits for the kernel of another rank must not be launched alone: streams may share a hardware queue, or
// a tool may run kernels one by one (docs/decisions/0008).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "choice/choice.h"
#include "cuda/engine.h"
#include "gpu/launch_arrivals.h"
#include "process/gpu_process.h"

namespace tutti {

class PeerSharing;

/// The algorithm and the access of a call on device memory.
struct GpuChoice {
  const Algorithm* algorithm = nullptr;
  Access access = Access::mapped;
};

/// How the kernels of a call wait for those of other ranks.
enum class Waiting {
  in_launch,  ///< all ranks' are one launch
  by_flags,   ///< all run at the same time, in several launches
  by_host,    ///< not at all: the host lets them go when their time has come
};

/// What the kernels of a group need where the communicator has ranks in other groups.
struct RemoteGroups {
  std::vector<std::byte*> areas;                  ///< by rank: see cuda::EngineShape
  std::vector<std::shared_ptr<const void>> held;  ///< see there
  int channels = 0;                               ///< equal on all ranks
};

/// Thread-safe.
class LaunchGroup {
 public:
  /// `members`: ascending, of a communicator of `ranks`.
  LaunchGroup(GpuProcess& process, std::vector<Rank> members, int ranks);
  /// The group of these ranks. `key` is equal on them, and used by no other group.
  static std::shared_ptr<LaunchGroup> of(GpuProcess& process, std::uint32_t key, std::vector<Rank> members, int ranks);
  /// Waits for running work, at most a second. Memory of work that has not ended then is never freed.
  ~LaunchGroup();
  LaunchGroup(const LaunchGroup&) = delete;
  LaunchGroup& operator=(const LaunchGroup&) = delete;

  /// Adds `rank`, which is on `gpu` and was created by the calling thread. Where the communicator has ranks in other
  /// groups, the last member to enter launches a kernel that meets those of all other groups. Errors: cuda,
  /// invalid_usage (no kernel of so many blocks).
  Result<void> enter(Rank rank, cuda::SharedGpu gpu, RemoteGroups remote = {});
  /// Whether that kernel met all others; empty as long as it runs or members are missing. Errors: cuda; what it
  /// reports.
  std::optional<Result<void>> proof() const;

  /// The driver thread looks whether kernels have ended, until `sharing` has left. Kernels and graphs keep it, with all
  /// that it has mapped.
  void be_watched(const std::shared_ptr<PeerSharing>& sharing) const;

  /// Whether some launch was captured.
  bool has_captured() const { return !captured_engine().expired(); }
  /// The engine, if some launch was captured.
  std::weak_ptr<cuda::Engine> captured_engine() const {
    const std::lock_guard lock(mutex_);
    return engine_ && engine_->has_captured() ? engine_ : nullptr;
  }
  bool is_alone() const { return arrivals_.ranks().size() == 1; }
  /// All ranks of the communicator are members: then any plan may run here, otherwise those through slots, and those
  /// through windows that ranks agree on.
  bool is_single_launch() const { return static_cast<int>(arrivals_.ranks().size()) == communicator_ranks_; }

  /// `rank` arrives with its offer. True: the launch is over, as all ranks had arrived or the launch has failed; see
  /// outcome. False: it is over when `rank` does not wait any more; see arrivals.
  bool arrive(Rank rank, const GpuOffer& offer);
  /// Result of the last launch of a rank that does not wait.
  Result<void> outcome() const;
  /// `rank` stops waiting for a launch.
  void withdraw(Rank rank);

  /// Launches sends and receives of a rank that is alone, of a communicator with ranks in other groups. Errors:
  /// invalid_usage, cuda.
  Result<void> launch_messages(const cuda::MessagesJob& job);

  /// `rank` makes its next call on host memory, or on device memory through the host (`host_staged`: then the calling
  /// thread is not the one that drives the rank). Errors: invalid_usage (another rank makes the same call by kernels).
  Result<void> host_call(Rank rank, bool host_staged);

  /// Who has arrived, of whom nothing changes as long as this lives.
  struct Arrivals {
    std::unique_lock<std::mutex> lock;
    const LaunchArrivals& of;
    const LaunchArrivals* operator->() const { return &of; }
  };
  Arrivals arrivals() const { return {.lock = std::unique_lock(mutex_), .of = arrivals_}; }

  /// Makes waiting kernels give up.
  void abort();
  /// Why a kernel gave up; empty if none did.
  std::optional<Error> trouble() const;
  /// True if no launched kernel runs any more. Errors: cuda (the error of a kernel).
  Result<bool> idle() const;
  /// Waits until that is so, for a limited time. False: it is not.
  bool await_end(std::int64_t longest_ns) const {
    return process_.await_idle([this] { return idle(); }, longest_ns);
  }

 private:
  Result<void> launch();
  Result<void> open();

  GpuProcess& process_;
  const int communicator_ranks_;
  mutable std::mutex mutex_;
  LaunchArrivals arrivals_;
  std::vector<cuda::SharedGpu> gpus_;  // by member
  RemoteGroups remote_groups_;
  std::optional<Error> failure_;
  std::shared_ptr<cuda::Engine> engine_;
  std::atomic<cuda::Engine*> launched_ = nullptr;  // engine_, for threads that must not wait for a launch
};

}  // namespace tutti
