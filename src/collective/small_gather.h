// An all-gather of a few bytes inside another call, for ranks that cannot read each other's call descriptors.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "comm/communicator.h"

namespace tutti {

/// Sends messages on the channels of the enclosing call, with that call's signature. Must not be moved.
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

}  // namespace tutti
