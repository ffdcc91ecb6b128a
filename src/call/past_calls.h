// What the calls of a communicator so far have shown: which are small, and what the last one used.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plan/types.h"

namespace tutti {

class PastCalls {
 public:
  PastCalls() { small_bytes_.fill(-1); }

  /// A call that was inline because of its size shows that smaller calls of the collective are inline as well, by the
  /// same algorithm: that of the last collective. For the call whose turn it is, as what follows of small calls. Local
  /// knowledge: what is here changes nothing that peers see.
  void note_small(Collective collective, std::size_t group_bytes) {
    auto& most = small_bytes_[static_cast<std::size_t>(collective)];
    most = std::max(most, static_cast<std::int64_t>(group_bytes));
    small_algorithms_[static_cast<std::size_t>(collective)] = algorithm();
  }
  bool is_small(Collective collective, std::size_t group_bytes) const {
    return static_cast<std::int64_t>(group_bytes) <= small_bytes_[static_cast<std::size_t>(collective)];
  }
  /// Of calls that are small.
  const char* small_algorithm(Collective collective) const {
    return small_algorithms_[static_cast<std::size_t>(collective)];
  }

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
  std::array<std::int64_t, collective_count> small_bytes_;  // by collective, a group of the largest one; -1: none
  std::array<const char*, collective_count> small_algorithms_{};
  std::atomic<const char*> algorithm_ = "";
  std::atomic<const char*> transport_ = "";
};

}  // namespace tutti
