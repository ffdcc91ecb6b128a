// The ranks of a communicator that share a GPU launch together: each rank waits on the host, and the last rank to
// arrive launches for all.
//
// A kernel that waits for the kernel of another rank must not be launched alone: streams may share a hardware queue, or
// a tool may run kernels one by one (docs/decisions/0008).
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

/// A rank's plan, and its copy in GPU memory, made when the plan is first used.
struct GpuPlan {
  Plan plan;
  std::shared_ptr<const cuda::DevicePlan> uploaded;
};

/// A rank's part of a launch. All of it must live until the launch is finished or the rank withdraws.
struct GpuOffer {
  const Request* request = nullptr;
  cuda::Stream stream = nullptr;
  GpuPlan* plan = nullptr;
};

/// Thread-safe.
class LaunchGroup {
 public:
  LaunchGroup(GpuProcess& process, int ranks);
  /// The group of a communicator whose ranks are all in this process. `key` is equal on these ranks, and used by no
  /// other communicator.
  static std::shared_ptr<LaunchGroup> of(GpuProcess& process, std::uint32_t key, int ranks);
  /// Waits for running work, at most a second. Memory of work that has not ended then is never freed.
  ~LaunchGroup();
  LaunchGroup(const LaunchGroup&) = delete;
  LaunchGroup& operator=(const LaunchGroup&) = delete;

  /// Adds `rank`, which is on `gpu` and was created by the calling thread.
  void enter(Rank rank, cuda::SharedGpu gpu);

  /// `rank` arrives with its offer. True: the launch is over, as all ranks had arrived or the launch has failed; see
  /// outcome. False: call finished later.
  bool arrive(Rank rank, const GpuOffer& offer);
  bool finished(Rank rank) const;
  /// Result of the last launch of `rank`, which must be finished.
  Result<void> outcome() const;
  /// `rank` stops waiting for a launch.
  void withdraw(Rank rank);

  /// `rank` makes its next call on host memory, or on device memory through the host (`host_staged`: then the calling
  /// thread is not the one that drives the rank). Errors: invalid_usage (another rank makes the same call by kernels).
  Result<void> host_call(Rank rank, bool host_staged);

  /// The first rank that `rank` waits for; −1: none.
  Rank missing(Rank rank) const;
  /// True if all ranks that `rank` waits for were last driven by the calling thread.
  bool waits_for_itself(Rank rank) const;

  /// Makes waiting kernels give up.
  void abort();
  /// Why a kernel gave up; empty if none did.
  std::optional<Error> trouble() const;
  /// True if no launched kernel runs any more. Errors: cuda (the error of a kernel).
  Result<bool> idle() const;

 private:
  struct Member {
    cuda::SharedGpu gpu;
    GpuOffer offer;
    bool waiting = false;
    std::uint64_t calls = 0;       // collectives so far, on host or device memory
    std::uint64_t host_calls = 0;  // bit i: the last call whose number is i modulo 64 was on host memory
    std::thread::id driver;        // the thread that last made a call of this rank
  };

  Result<void> launch();
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
  std::atomic<cuda::Engine*> launched_ = nullptr;  // engine_, for threads that must not wait for a launch
};

}  // namespace tutti
