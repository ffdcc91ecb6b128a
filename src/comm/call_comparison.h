// Whether the ranks of a communicator that have no call descriptors all call the same, also where no data meets.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "call/mismatch.h"
#include "comm/call_history.h"
#include "comm/communicator.h"

namespace tutti {

/// Each rank tells the ranks next to it (those of its host, and its control neighbours) what its calls amount to: a
/// running hash at its last call, ten times a second and when it leaves. A rank that has made the call of that number
/// compares the hash with its own. So two ranks need not be at the same call, nothing waits for it, and one difference
/// shows however many equal calls follow. Where hashes differ and the last calls do not, ranks of different hosts tell
/// each other their calls since the last equal hash.
///
/// Any thread; one at a time.
class CallComparison {
 public:
  explicit CallComparison(Communicator& communicator);

  /// Tells peers what was called since the last time.
  void tell();
  /// Compares what peers have told: soon after it came, while this rank still knows what it had called itself. Errors:
  /// invalid_usage (both calls are named), as long as one is found.
  Result<void> look();

  /// For a rank that leaves: asks its peers, and waits at most `limit_ns` for those who have not come to its last call
  /// yet. Errors: as look; also for a peer that has made more calls than this rank ever will.
  Result<void> look_before_leaving(std::int64_t limit_ns);

  /// The error of a peer that left before it made all calls of this rank; nothing where it did not.
  std::optional<Error> left_early(Rank peer);

 private:
  struct Compared {
    Rank rank = 0;
    std::uint64_t agreed = 0;                   ///< up to this call both have called the same
    std::optional<CallSummary> ahead = {};      ///< told, of a call this rank has not made yet
    std::optional<CallSummary> differing = {};  ///< told, and unlike this rank's, at the same last call
    std::int64_t differs_since_ns = 0;
    std::uint32_t answers = 0;  ///< when it was asked
  };
  void tell_all(bool ask);
  Result<void> compare(Compared& with);
  Result<void> check(Compared& with, const CallSummary& theirs);
  Result<void> check_calls();
  Result<void> check_leaver(const Compared& with, const CallSummary& theirs) const;
  void tell_calls(const Compared& with) const;
  Result<void> compare_all();
  Result<bool> poll_peers(bool ask);
  bool settled(const Compared& with) const;
  const AreaHeader& header(Rank rank) const { return communicator_.members().peers[rank].area.header(); }
  MadeCall own(std::uint64_t sequence) const;

  Communicator& communicator_;
  const CallHistory& history_;
  std::mutex mutex_;
  std::vector<Compared> compared_;
  std::uint64_t told_ = 0;
};

}  // namespace tutti
