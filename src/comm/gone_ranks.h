// Which ranks of a communicator are gone, and since when.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/types.h"

namespace tutti {

/// Their processes have ended, or they have failed or are lost. The service thread marks, any thread reads. A mark
/// stays.
class GoneRanks {
 public:
  explicit GoneRanks(int ranks) : since_ns_(static_cast<std::size_t>(ranks)), mute_(static_cast<std::size_t>(ranks)) {}

  /// `mute`: its process lives, but is no rank any more.
  void mark(Rank rank, std::int64_t now_ns, bool mute = false) {
    if (mute) mute_[static_cast<std::size_t>(rank)].store(true, std::memory_order_relaxed);
    std::int64_t never = 0;
    since_ns_[static_cast<std::size_t>(rank)].compare_exchange_strong(never, now_ns, std::memory_order_acq_rel);
    any_.store(true, std::memory_order_release);
  }
  /// 0: it is not gone.
  std::int64_t since_ns(Rank rank) const {
    return since_ns_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire);
  }
  bool is_mute(Rank rank) const { return mute_[static_cast<std::size_t>(rank)].load(std::memory_order_relaxed); }
  bool any() const { return any_.load(std::memory_order_acquire); }

 private:
  std::vector<std::atomic<std::int64_t>> since_ns_;
  std::vector<std::atomic<bool>> mute_;
  std::atomic<bool> any_ = false;
};

}  // namespace tutti
