// The counts of a call with a count per rank when not all ranks share memory: exchanged as messages before the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "call/layout.h"
#include "call/request.h"
#include "collective/small_gather.h"
#include "comm/communicator.h"

namespace tutti {

/// One all-gather of sums. If the sums show that ranks disagree, which all ranks then see, a second all-gather brings
/// the counts of every pair for an error that names the ranks. Must not be moved.
class ExchangedCounts {
 public:
  /// Both must outlive this object. The request must have a layout. `sequence` is the number of the call.
  ExchangedCounts(Communicator& communicator, const Request& request, std::uint64_t sequence);

  /// Errors: invalid_usage (ranks disagree), remote.
  Result<Progress> advance();
  void poll_set(std::vector<PollItem>& items) const { gather_->poll_set(items); }
  /// The rank that the exchange waits for, or −1.
  Rank waiting_for() const { return gather_->waiting_for(); }

  /// The largest count. Valid after done.
  std::size_t largest() const { return largest_; }

 private:
  Result<Progress> compare();
  Error disagreement() const;

  Communicator& communicator_;
  const Request& request_;
  std::uint64_t sequence_;
  std::optional<SmallGather> gather_;  // of the sums, then of all counts
  bool all_ = false;
  std::size_t largest_ = 0;
};

}  // namespace tutti
