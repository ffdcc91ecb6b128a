// Where things go that were given up in a place that must not call the driver: a graph's destructor callback.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace tutti::cuda {

class DeferredReleases {
 public:
  void defer_release(std::shared_ptr<const void> what) {
    const std::lock_guard lock(mutex_);
    buried_.push_back(std::move(what));
    any_.store(true, std::memory_order_release);
  }

  /// Lets go of all there is, in the calling thread.
  void empty() {
    if (!any_.load(std::memory_order_acquire)) return;
    std::vector<std::shared_ptr<const void>> gone;
    {
      const std::lock_guard lock(mutex_);
      gone.swap(buried_);
      any_.store(false, std::memory_order_relaxed);
    }
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> any_ = false;
  std::vector<std::shared_ptr<const void>> buried_;
};

}  // namespace tutti::cuda
