// Whether anybody still answers for a peer that is to connect.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/system.h"
#include "net/life_probe.h"

namespace tutti {

/// For a peer of whose end no control connection would tell. It may be in no hurry, so it is called.
class PeerPresence {
 public:
  /// No addresses: it is not asked for.
  explicit PeerPresence(ProbeTarget target) : target_(std::move(target)) {}

  /// True: nobody answers for it any more. To be asked again and again, from when it is first waited for.
  bool gone(System& system) {
    constexpr std::int64_t begin_after_ns = 2'000'000'000, every_ns = 500'000'000;
    constexpr int turned_away_max = 5;
    if (target_.addresses.empty()) return false;
    const std::int64_t now = system.now_ns();
    if (since_ns_ == 0) since_ns_ = now;
    if (now - since_ns_ < begin_after_ns) return false;
    if (!probe_) probe_.emplace(target_);
    if (probe_->advance(system, every_ns)) since_ns_ = now;
    return probe_->turned_away() >= turned_away_max;
  }
  void poll_set(std::vector<PollItem>& items) const {
    if (probe_) probe_->poll_set(items);
  }

 private:
  ProbeTarget target_;
  std::optional<LifeProbe> probe_;
  std::int64_t since_ns_ = 0;  // of waiting, or of its last answer
};

}  // namespace tutti
