// Why ranks of the root's own process cannot take part, and whether the process has to wait for the root.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap_messages.h"

namespace tutti::bootstrap {

/// Between the threads of the ranks and the one that advances the root. Any thread.
class LocalExcuses {
 public:
  /// `linger`: see BootstrapRoot::awaited.
  void add(Excused said, bool linger) {
    const std::lock_guard lock(mutex_);
    said_.push_back(std::move(said));
    if (!linger) others_know_ = true;
    await();
  }
  /// Those since the last time.
  std::vector<Excused> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(said_, {});
  }
  /// Whether others know the reason of a failure by other ways.
  bool others_know() const { return others_know_; }

  /// The process has to wait for the root until `wait_only_if` says otherwise.
  void await() { awaited_.store(true, std::memory_order_relaxed); }
  void wait_only_if(bool needed) {
    const std::lock_guard lock(mutex_);
    awaited_.store(needed || !said_.empty(), std::memory_order_relaxed);
  }
  bool awaited() const { return awaited_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> others_know_ = false;
  std::atomic<bool> awaited_ = false;
  std::mutex mutex_;  ///< guards what follows
  std::vector<Excused> said_;
};

}  // namespace tutti::bootstrap
