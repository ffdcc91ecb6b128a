// Whom ranks wait for, as they tell one another: so that a call that ends at its limit names the rank that holds up
// all others, and not one that waits itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "call/waiting.h"
#include "plan/types.h"

namespace tutti {

class Communicator;

/// Of a call that waits for whichever rank comes first.
inline constexpr Rank any_rank = -2;

/// What AreaHeader::waits holds: one of these, or `for_rank`.
namespace waits {
inline constexpr std::uint32_t for_nobody = 0;  ///< in no call, or in one that has moved within the last millisecond
inline constexpr std::uint32_t unknown = 1;     ///< in a call that cannot say; or nothing has been heard of the rank
inline constexpr std::uint32_t for_any_rank = 2;
constexpr std::uint32_t for_rank(Rank rank) {
  if (rank == any_rank) return for_any_rank;
  return rank < 0 ? unknown : static_cast<std::uint32_t>(rank) + 3;
}
}  // namespace waits

/// How the threads of this rank wait in a communicator: until when, and for whom, as its peers read it.
class OwnWaits {
 public:
  /// `word`: AreaHeader::waits of this rank. Must outlive this object.
  OwnWaits(std::atomic<std::uint32_t>& word, const CallLimit& limit) : word_(word), limit_(limit) {}

  /// The limit of calls that are made now. For the thread that makes calls.
  const CallLimit& limit() const { return limit_; }
  void set_limit(const CallLimit& limit) { limit_ = limit; }

  /// Several threads may wait.
  void begin() { waiting_.fetch_add(1, std::memory_order_relaxed); }
  /// `for_whom`: the rank; −1 if the thread cannot tell.
  void note(std::int64_t now_ns, Rank for_whom) {
    noted_ns_.store(now_ns, std::memory_order_relaxed);
    if (for_whom < 0 && word_.load(std::memory_order_relaxed) != waits::for_nobody)
      return;  // another thread knows more
    word_.store(waits::for_rank(for_whom), std::memory_order_relaxed);
  }
  void end() {
    if (waiting_.fetch_sub(1, std::memory_order_relaxed) != 1) return;
    // After the state of a communicator that has failed: see Waiter::check_limit.
    word_.store(waits::for_nobody, std::memory_order_release);
  }
  /// When a thread that waits for a peer, in whatever call, last said so; 0: none has. Any thread.
  std::int64_t noted_ns() const { return noted_ns_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t>& word_;
  CallLimit limit_;
  std::atomic<int> waiting_ = 0;
  std::atomic<std::int64_t> noted_ns_ = 0;
};

/// Who is at the end of a chain of ranks that wait for each other.
struct Holdup {
  Rank rank = -1;          ///< −1: none is known
  std::string words = {};  ///< "; rank 2 waits for rank 1, rank 1 waits in no call of this communicator"; may be empty
};

/// What keeps `rank` from going on, for which this rank waits (negative: any, or it does not know): what the ranks of
/// this host show in their areas, and what control neighbours have told a tenth of a second ago.
Holdup held_up_by(const Communicator& communicator, Rank rank);

}  // namespace tutti
