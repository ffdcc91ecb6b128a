// How many communicators have streams that wait for the host, and whether these hold each other up.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>

#include "base/log.h"

namespace tutti {

/// Thread-safe.
class WaitingStreams {
 public:
  /// `one_queue`: CUDA gives all streams one queue.
  explicit WaitingStreams(bool one_queue) : one_queue_(one_queue) {}

  /// One for each communicator whose streams wait for the host, to be kept as long as it lives. Says in the log, once,
  /// that such streams hold each other up: if all have one queue, and there are several of these communicators.
  std::shared_ptr<const void> enter(Log& log, std::string_view who);

 private:
  const bool one_queue_;
  const std::shared_ptr<const int> count_ = std::make_shared<int>();
  std::atomic<bool> told_ = false;
};

}  // namespace tutti
