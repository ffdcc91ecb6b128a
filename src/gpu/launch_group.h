// Where the ranks of a communicator that share a GPU meet on the host: the last one to come launches for all.
//
// A kernel of one rank that waits for the kernel of another must not be launched alone: streams may share a queue of
// the hardware, or a tool may run kernels one by one (docs/decisions/0008).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "call/request.h"
#include "cuda/engine.h"
#include "gpu/gpu_choice.h"
#include "plan/plan.h"
#include "process/gpu_process.h"

namespace tutti {

/// A rank's plan, and its copy in the memory of the GPU once it was used there.
struct GpuPlan {
  Plan plan;
  std::shared_ptr<const cuda::DevicePlan> uploaded;
};

/// What a rank brings to a meeting. All of it outlives the meeting, or the rank withdraws.
struct GpuOffer {
  const Request* request = nullptr;
  cuda::Stream stream = nullptr;
  GpuPlan* plan = nullptr;
};

/// Any thread.
class LaunchGroup {
 public:
  LaunchGroup(GpuProcess& process, int ranks);
  /// The ranks of one communicator, which are all in this process. `key`: the same for all of them, and no others'.
  static std::shared_ptr<LaunchGroup> of(GpuProcess& process, std::uint32_t key, int ranks);
  /// Waits for what runs, at most a second; what does not end keeps its memory for ever.
  ~LaunchGroup();
  LaunchGroup(const LaunchGroup&) = delete;
  LaunchGroup& operator=(const LaunchGroup&) = delete;

  /// `rank` is there, on `gpu`, made in the calling thread.
  void enter(Rank rank, cuda::SharedGpu gpu);

  /// True: everybody is here, and the call was launched or has failed; see outcome. False: ask finished.
  bool arrive(Rank rank, const GpuOffer& offer);
  bool finished(Rank rank) const;
  /// Of the last meeting of `rank`, which is finished.
  Result<void> outcome() const;
  /// `rank` does not wait any more.
  void withdraw(Rank rank);

  /// `rank` makes its next call on host memory, or through it: then who drives the rank is not this thread. Errors:
  /// invalid_usage, when another rank makes the same call by kernels.
  Result<void> host_call(Rank rank, bool host_staged);

  /// For whom `rank` waits, the first; −1: it does not.
  Rank missing(Rank rank) const;
  /// All for whom `rank` waits were last driven by the calling thread.
  bool waits_for_itself(Rank rank) const;

  /// Ends kernels that wait.
  void abort();
  /// Why a kernel gave up.
  std::optional<Error> trouble() const;
  /// Nothing that was launched runs any more. Errors: cuda (what it ended with).
  Result<bool> idle() const;

 private:
  struct Member {
    cuda::SharedGpu gpu;
    GpuOffer offer;
    bool waiting = false;
    std::uint64_t calls = 0;       // collectives so far, on host or device memory
    std::uint64_t host_calls = 0;  // bit i: the last call whose number is i modulo 64 was on host memory
    std::thread::id driver;        // who called last
  };

  Result<void> meet();
  Result<void> compare() const;
  Result<void> open();
  static Error mixed(Rank host, Rank device);

  GpuProcess& process_;
  const int ranks_;
  mutable std::mutex mutex_;
  std::vector<Member> members_;
  int arrived_ = 0;
  std::optional<Error> failure_;
  std::shared_ptr<cuda::Engine> engine_;
  std::atomic<cuda::Engine*> launched_ = nullptr;  // the same, for those who must not wait for a meeting
};

}  // namespace tutti
