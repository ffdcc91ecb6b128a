// Which members of a launch group have come to their next call, on which kind of memory, and in which thread.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "call/request.h"
#include "choice/choice.h"
#include "cuda/job.h"
#include "plan/plan.h"

namespace tutti {

/// A rank's plan, and its copy in GPU memory, made when the plan is first used.
struct GpuPlan {
  const Algorithm* algorithm = nullptr;
  Plan plan;
  std::shared_ptr<const cuda::DevicePlan> uploaded;
};

/// A rank's part of a launch. All of it must live until the launch is finished or the rank withdraws.
struct GpuOffer {
  const Request* request = nullptr;
  cuda::Part part = {};  ///< its plans are not uploaded yet
  GpuPlan* plan = nullptr;
  GpuPlan* combine = nullptr;  ///< those of a reduction with a count per rank, where `plan` is empty
  GpuPlan* scale = nullptr;    ///< null: none
  GpuPlan* windows = nullptr;  ///< to be used if all ranks offer their buffers; null: none, on all ranks
};

class LaunchArrivals {
 public:
  /// `ranks`: of the members, ascending.
  explicit LaunchArrivals(std::vector<Rank> ranks) : ranks_(std::move(ranks)), members_(ranks_.size()) {}

  const std::vector<Rank>& ranks() const { return ranks_; }
  std::size_t index_of(Rank rank) const;
  const GpuOffer& offer(std::size_t index) const { return members_[index].offer; }

  /// `rank` was created by the calling thread.
  void enter(Rank rank) { member(rank).driver = std::this_thread::get_id(); }
  /// Whether all members have arrived, of which this is the last. Errors: invalid_usage (another makes the same call on
  /// host memory); then `rank` does not wait.
  Result<bool> arrive(Rank rank, const GpuOffer& offer);
  /// Whether all members make the same call. Requires that all have arrived. Errors: invalid_usage.
  Result<void> compare() const;
  /// All have arrived, and none waits any more.
  void end();
  void withdraw(Rank rank);
  /// See LaunchGroup::host_call.
  Result<void> host_call(Rank rank, bool host_staged);

  bool waits(Rank rank) const { return member(rank).waiting; }
  /// The first rank that `rank` waits for; −1: none.
  Rank missing(Rank rank) const;
  /// True if all ranks that `rank` waits for were last driven by the calling thread.
  bool waits_for_itself(Rank rank) const;

 private:
  struct Member {
    GpuOffer offer;
    bool waiting = false;
    std::uint64_t calls = 0;       // collectives so far, on host or device memory
    std::uint64_t host_calls = 0;  // bit i: the last call whose number is i modulo 64 was on host memory
    std::thread::id driver;        // the thread that last made a call of this rank
  };
  Member& member(Rank rank) { return members_[index_of(rank)]; }
  const Member& member(Rank rank) const { return members_[index_of(rank)]; }
  Rank rank_of(const Member& member) const { return ranks_[static_cast<std::size_t>(&member - members_.data())]; }

  std::vector<Rank> ranks_;
  std::vector<Member> members_;
  int arrived_ = 0;
};

}  // namespace tutti
