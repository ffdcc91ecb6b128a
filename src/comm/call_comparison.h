// Checks that the ranks of a communicator without call descriptors make equal calls, even if they exchange no data.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "call/mismatch.h"
#include "comm/call_history.h"
#include "comm/membership.h"

namespace tutti {

/// Each rank sends a summary of its calls, a running hash at its last call, to the ranks of its host and to its control
/// neighbours: ten times a second and when it leaves. A rank that has made the call with that number compares the hash
/// with its own hash at that call. So two ranks need not be at the same call, no call waits for the comparison, and a
/// difference shows however many equal calls follow. If the hashes differ but the last calls are equal, ranks of
/// different hosts send each other their calls since the last equal hash.
///
/// Thread-safe.
class CallComparison {
 public:
  /// All arguments must outlive this object. `history`: of this rank's calls. `failed` ends a wait.
  CallComparison(System& system, const Membership& members, const CallHistory& history,
                 const std::atomic<bool>& failed);

  /// Sends peers the summary if there were calls since the last time.
  void tell();
  /// Compares the peers' summaries. To be called soon after they arrive, while this rank's own calls are still in the
  /// history. Errors: invalid_usage (names both calls).
  Result<void> look();

  /// For a rank that leaves: asks its peers for their summaries, and waits at most `limit_ns` for peers that have not
  /// made its last call yet. Errors: as look; also if a peer has made more calls than this rank.
  Result<void> check_before_leaving(std::int64_t limit_ns);

  /// The error of a peer that left before it made all calls of this rank; empty if it did not.
  std::optional<Error> left_early(Rank peer);

 private:
  struct Compared {
    Rank rank = 0;
    std::uint64_t agreed = 0;                   ///< the calls of both ranks are equal up to this one
    std::optional<CallSummary> ahead = {};      ///< peer's, of a call this rank has not made yet
    std::optional<CallSummary> differing = {};  ///< peer's, with another hash but the same last call
    std::int64_t differs_since_ns = 0;
    std::uint32_t answers = 0;  ///< AreaHeader::answers when the peer was asked
    bool answered = false;      ///< the summary compared last is not older than the peer's answer
    bool ended = false;         ///< the summary compared last was the peer's last: it had left or failed
  };
  void send_to_all(bool ask);
  Result<void> compare(Compared& with);
  Result<void> check(Compared& with, const CallSummary& theirs);
  Result<void> check_calls();
  Result<void> check_leaver(const Compared& with, const CallSummary& theirs) const;
  Error differing_somewhere(const Compared& with) const;
  void send_calls(const Compared& with) const;
  Result<void> compare_all();
  Result<bool> poll_peers(bool ask);
  void note_state(Compared& with) const;
  bool settled(const Compared& with) const { return with.ended || (with.answered && with.agreed >= history_.latest()); }
  const AreaHeader& header(Rank rank) const { return members_.peers[rank].area.header(); }
  MadeCall own(std::uint64_t sequence) const;

  System& system_;
  const Membership& members_;
  const CallHistory& history_;
  const std::atomic<bool>& failed_;
  std::mutex mutex_;
  std::vector<Compared> compared_;
  std::uint64_t told_ = 0;
};

}  // namespace tutti
