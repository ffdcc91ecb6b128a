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
#include "base/error.h"
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

/// The ranks of a communicator that are in this rank's process and on its GPU: their streams may hold each other up.
class GpuNeighbours {
 public:
  /// `by_rank`: whether it is one; true for `rank`, this one. Enters it into the order that neighbours share.
  GpuNeighbours(Rank rank, std::vector<bool> by_rank, std::shared_ptr<StreamOrder> order)
      : rank_(rank), by_rank_(std::move(by_rank)), received_(by_rank_.size()), order_(std::move(order)) {
    order_->enter(rank_);
  }

  bool contain(Rank rank) const { return by_rank_[static_cast<std::size_t>(rank)]; }
  int ranks() const { return static_cast<int>(by_rank_.size()); }  ///< of the communicator
  StreamOrder& order() const { return *order_; }
  /// Counts a collective that the host need not queue: neighbours number all collectives alike.
  void count_collective() { order_->collective(rank_, /*host_staged=*/false); }
  /// The number of this rank's next receive from `peer`, which matches the send with the same number.
  std::uint64_t next_receive(Rank peer) { return ++received_[static_cast<std::size_t>(peer)]; }

 private:
  const Rank rank_;
  std::vector<bool> by_rank_;
  std::vector<std::uint64_t> received_;
  std::shared_ptr<StreamOrder> order_;
};

/// The error of a thread that drives several ranks of a GPU and waits for a call that it has yet to make itself.
Error waits_for_own_thread(Rank rank, Rank missing, std::int64_t waited_ns);

}  // namespace tutti
