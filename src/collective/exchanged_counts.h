// The counts of a call with a count per rank, where ranks share no memory: exchanged as messages before the call's own.
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

/// One all-gather of sums. Where the sums show that ranks disagree, all ranks see it, and a second one brings every
/// pair's counts, for words that name the ranks. Not to be moved.
class ExchangedCounts {
 public:
  /// Both must outlive it. The request has a layout; `sequence` is the number of the call.
  ExchangedCounts(Communicator& communicator, const Request& request, std::uint64_t sequence);

  /// Errors: invalid_usage (ranks disagree), remote.
  Result<Progress> advance();
  void poll_set(std::vector<PollItem>& items) const { gather_->poll_set(items); }

  /// The largest count, once done.
  std::size_t largest() const { return largest_; }

 private:
  Result<Progress> compare();
  Error disagreement() const;

  Communicator& communicator_;
  const Request& request_;
  std::uint64_t sequence_;
  std::optional<SmallGather> gather_;  // of sums, then of all
  bool all_ = false;
  std::size_t largest_ = 0;
};

}  // namespace tutti
