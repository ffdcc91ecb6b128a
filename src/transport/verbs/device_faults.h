// What a device has said of itself that ends the use of it, or of one of its queues.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "transport/verbs/abi.h"

namespace tutti::verbs {

/// Such a device may never complete what it was given, so nothing else shows it. Thread-safe.
class DeviceFaults {
 public:
  /// Grows with each fault; a reader looks again when it has.
  unsigned count() const { return count_.load(std::memory_order_acquire); }
  /// `queue`: the completion queue that is broken, or whose queue pair is; null: all of the device.
  void add(const Cq* queue, const std::string& words) {
    const std::lock_guard lock(mutex_);
    words_.emplace(queue, words);
    count_.fetch_add(1, std::memory_order_release);
  }
  /// Why this queue cannot be used any more.
  std::optional<std::string> of(const Cq* queue) const {
    const std::lock_guard lock(mutex_);
    for (const Cq* const one : {static_cast<const Cq*>(nullptr), queue})
      if (const auto known = words_.find(one); known != words_.end()) return known->second;
    return std::nullopt;
  }
  /// The queue exists no more, and another one may get its address.
  void forget(const Cq* queue) {
    const std::lock_guard lock(mutex_);
    words_.erase(queue);
  }

 private:
  std::atomic<unsigned> count_ = 0;
  mutable std::mutex mutex_;
  std::map<const Cq*, std::string> words_;
};

}  // namespace tutti::verbs
