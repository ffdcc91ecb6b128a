// The counts of a call with a count per rank when not all ranks share memory: exchanged as messages before the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "call/layout.h"
#include "call/request.h"
#include "comm/communicator.h"

namespace tutti {

/// An all-gather of a few bytes inside another call: sends messages on that call's channels, with its signature. Must
/// not be moved.
class SmallGather {
 public:
  /// `mine` must have the same size on all ranks, at least one byte.
  SmallGather(Communicator& communicator, std::span<const std::byte> mine, std::uint64_t sequence);
  SmallGather(const SmallGather&) = delete;
  SmallGather& operator=(const SmallGather&) = delete;

  Result<Progress> advance() { return run_->advance(); }
  void poll_set(std::vector<PollItem>& items) const { run_->poll_set(items); }

  /// The rank that the exchange waits for, or −1.
  Rank waiting_for() const { return run_->waiting_for().peer; }

  /// The bytes of `rank`. Valid after done.
  std::span<const std::byte> of(Rank rank) const {
    return std::span(all_).subspan(static_cast<std::size_t>(rank) * mine_.size(), mine_.size());
  }

 private:
  std::vector<std::byte> mine_;
  std::vector<std::byte> all_;
  std::vector<std::byte> scratch_;
  Binding binding_;
  std::optional<Run> run_;
};

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
