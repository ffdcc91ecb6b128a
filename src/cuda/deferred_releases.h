// Holds objects that were given up in a graph's destructor callback, which must not call the driver, until another
// thread can release them.
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
    deferred_.push_back(std::move(what));
    any_.store(true, std::memory_order_release);
  }

  /// Releases all objects held, in the calling thread.
  void empty() {
    if (!any_.load(std::memory_order_acquire)) return;
    std::vector<std::shared_ptr<const void>> gone;
    {
      const std::lock_guard lock(mutex_);
      gone.swap(deferred_);
      any_.store(false, std::memory_order_relaxed);
    }
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> any_ = false;
  std::vector<std::shared_ptr<const void>> deferred_;
};

}  // namespace tutti::cuda
