// Ranks of one process on one GPU: what each of them has queued there.
//
// A stream that waits for the host may hold up others, for streams share queues of the hardware. So a rank has its
// stream wait for a call only when what its neighbours give to that call is queued; then nothing that it waits for is
// behind it.
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

/// Of one communicator. Any thread.
class StreamOrder {
 public:
  explicit StreamOrder(int ranks)
      : ranks_(ranks), members_(static_cast<std::size_t>(ranks)), sent_(members_.size() * members_.size()) {}

  /// Of the ranks of a communicator that are in this process and on one GPU, where others may be elsewhere. `key`: the
  /// same for all of them, and no others'.
  static std::shared_ptr<StreamOrder> of(Directory& directory, std::uint32_t key, int ranks);

  /// `rank` is there, made in the calling thread.
  void enter(Rank rank);

  /// `rank` makes its next collective, whatever memory it is on; `staged`: it has something to queue, later.
  /// Returns the number of the call, the same on all ranks.
  std::uint64_t collective(Rank rank, bool host_staged);
  /// `rank` has queued what it had to of the first such call.
  void queued(Rank rank);
  /// Whether `rank` has nothing to queue any more of the call of that number.
  bool has_queued(Rank rank, std::uint64_t number) const;

  /// What `from` sends next to `to` is queued, or on the host.
  void sent(Rank from, Rank to);
  bool has_sent(Rank from, Rank to, std::uint64_t number) const;

  /// The calling thread is the one that last drove `rank`.
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
