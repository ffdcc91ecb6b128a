// Keeps track of the work that each rank of one process has queued on one GPU.
//
// A stream that waits for the host may block other streams, because streams share hardware queues. So a rank queues its
// wait for a call only once its neighbours have queued their inputs to that call: then no work that it waits for can be
// behind the wait.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/directory.h"
#include "plan/types.h"

namespace tutti {

/// For one communicator. Thread-safe.
class StreamOrder {
 public:
  explicit StreamOrder(int ranks)
      : ranks_(ranks), members_(static_cast<std::size_t>(ranks)), sent_(members_.size() * members_.size()) {}

  /// The object shared by those ranks of a communicator that are in this process and on one GPU. `key` is equal on
  /// these ranks, and used by no others.
  static std::shared_ptr<StreamOrder> of(Directory& directory, std::uint32_t key, int ranks);

  /// Adds `rank`, created by the calling thread.
  void enter(Rank rank);

  /// `rank` makes its next collective, on any memory. `host_staged`: it will queue its input later. Returns the number
  /// of the call, which is the same on all ranks.
  std::uint64_t collective(Rank rank, bool host_staged);
  /// `rank` has queued its input to its first host-staged collective that was not queued yet.
  void queued(Rank rank);
  /// Whether `rank` has made call `number` and has nothing more to queue for it.
  bool has_queued(Rank rank, std::uint64_t number) const;

  /// The next send from `from` to `to` is queued, or is a send of host memory.
  void sent(Rank from, Rank to);
  bool has_sent(Rank from, Rank to, std::uint64_t number) const;

  /// Whether the calling thread is the one that last drove `rank`.
  bool driven_here(Rank rank) const;

 private:
  struct Member {
    std::uint64_t calls = 0;
    std::deque<std::uint64_t> unqueued;
    std::thread::id driver;
  };
  const Member& member(Rank rank) const { return members_[static_cast<std::size_t>(rank)]; }
  Member& member(Rank rank) { return members_[static_cast<std::size_t>(rank)]; }
  std::size_t pair(Rank from, Rank to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(to);
  }

  const int ranks_;
  mutable std::mutex mutex_;
  std::vector<Member> members_;
  std::vector<std::uint64_t> sent_;  // by pair
};

}  // namespace tutti
