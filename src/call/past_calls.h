// What the calls of a communicator so far have shown: which are small, and what the last one used.
#pragma once

#include <atomic>
#include <string_view>

#include "call/small_calls.h"

namespace tutti {

class PastCalls {
 public:
  /// For the call whose turn it is.
  SmallCalls& small() { return small_; }

  /// Algorithm and transport of the last collective. Any thread. While calls are in flight, the names may be those of
  /// any of them: the thread that queues work for a GPU and the thread of a stream both note what they use.
  const char* algorithm() const { return algorithm_.load(std::memory_order_relaxed); }
  const char* transport() const { return transport_.load(std::memory_order_relaxed); }
  /// `algorithm` must live as long as the communicator; `transport` is a literal.
  void note_used(const char* algorithm, std::string_view transport) {
    algorithm_.store(algorithm, std::memory_order_relaxed);
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): a literal
    transport_.store(transport.data(), std::memory_order_relaxed);
  }

 private:
  SmallCalls small_;
  std::atomic<const char*> algorithm_ = "";
  std::atomic<const char*> transport_ = "";
};

}  // namespace tutti
