// Whether and why a rank has failed, ended or left, and which calls that concerns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "comm/communicator.h"
#include "transport/fifo.h"

namespace tutti {

/// The error of a rank that failed, aborted, is lost, or whose process has ended. Empty for a rank that is open or has
/// closed: a rank that has closed has finished all its calls, and a rank that still waits for it finds this out by
/// poll_peers.
std::optional<Error> failure_of(const Communicator& communicator, Rank rank);

/// The error that a rank is lost, as far as its process shows how.
Error lost(const Communicator& communicator, Rank rank);
/// The error that this process has closed descriptors of the library.
Error lost_descriptors(const Communicator& communicator);

/// The failure of any rank other than this one.
std::optional<Error> failure_of_any(const Communicator& communicator);

/// A rank that has ended, or failed because of another one, needs nothing more in the collectives that it had completed
/// by then, and has given all that others need of it there. So these go on.
///
/// The failure of a rank, if it ends collective `sequence` of this rank. Empty for a rank that is lost: what it has
/// sent may still arrive, so what waits for it asks `obstacle`.
std::optional<Error> failure_in(const Communicator& communicator, Rank rank, std::uint64_t sequence);
std::optional<Error> failure_in_any(const Communicator& communicator, std::uint64_t sequence);

/// As failure_in_any, for a collective that begins now: it also fails because of a rank that has been lost for so long
/// that all ranks were to enter the calls it had completed.
std::optional<Error> failure_before(const Communicator& communicator, std::uint64_t sequence);

/// Of a rank that is gone: whether the calls that it had completed go on. Not if it aborted, is silent, or failed for a
/// reason of its own, such as a mismatch, which concerns calls before that.
bool completes_calls(const Communicator& communicator, Rank rank);

/// Of a rank that is gone: whether it is known to have completed collective `sequence`. Of a lost rank nobody knows.
bool completed_call(const Communicator& communicator, Rank rank, std::uint64_t sequence);

/// How long what a lost rank has sent may be on its way, and where it comes at once (see Coming).
inline constexpr std::int64_t last_news_ns = 250'000'000, last_news_at_once_ns = 40'000'000;
/// How long after the loss of a rank of another host collectives may begin, or wait for ranks that have yet to enter
/// them, before they fail: which calls that rank had completed is unknown.
inline constexpr std::int64_t next_call_ns = 2'000'000'000;

/// For how long an operation, or its part that concerns one peer, has not moved.
class Stall {
 public:
  void note_move() { moved_ = true; }
  /// To be called from time to time. `coming`: from the peer; that its bytes come moves the operation too.
  void look(std::int64_t now_ns, const Coming& coming) {
    if (begun_ns_ == 0) begun_ns_ = now_ns;
    const bool came = std::exchange(coming_, coming).bytes != coming.bytes;
    if (std::exchange(moved_, false) || came) since_ns_ = now_ns;
    ns_ = now_ns - since_ns_;
  }
  std::int64_t ns() const { return ns_; }                              ///< at the last look
  std::int64_t moved_for_ns() const { return since_ns_ - begun_ns_; }  ///< before that
  /// For how long it may stall before nothing more is on its way. A slow network stops for a while: longer where the
  /// operation has moved for longer.
  std::int64_t news_ns() const {
    return coming_.at_once ? last_news_at_once_ns : std::clamp(moved_for_ns(), last_news_ns, next_call_ns);
  }

 private:
  bool moved_ = true;
  Coming coming_;
  std::int64_t begun_ns_ = 0, since_ns_ = 0, ns_ = 0;
};

/// Why nothing more will come from `rank`, for a call (`call` says which) that needs something of it. If there is an
/// answer, look once more before you believe it: it may have come meanwhile. Empty for a rank of another host that has
/// left: the end of its connections tells. What such a rank had sent before it was lost may go on coming for as long as
/// it likes: not empty only once the call has stalled. `stall`: of the call; null: it needs no data of that rank.
std::optional<Error> obstacle(const Communicator& communicator, Rank rank, const Stall* stall,
                              const std::function<std::string()>& call);

/// Whether `rank` has closed the communicator.
bool has_left(const Communicator& communicator, Rank rank);
/// The error of `call` (a description), which waits for a rank that has left.
Error left_before(const Communicator& communicator, Rank rank, const std::string& call);

}  // namespace tutti
