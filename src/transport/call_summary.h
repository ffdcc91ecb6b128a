// A short summary of all calls a rank has made. Ranks that do not see each other's call descriptors compare summaries.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>

#include "transport/call_descriptor.h"

namespace tutti {

/// Ranks that have made the same calls up to a sequence number have equal summaries there.
struct CallSummary {
  CallMark last;
  std::uint64_t hash = 0;  ///< of this call and all before it
  std::uint64_t sequence() const { return last.sequence; }
};
static_assert(sizeof(CallSummary) == 32);

/// The hash of all calls before and the next one. Not meant to withstand an adversary.
inline std::uint64_t hash_on(std::uint64_t before, const Signature& signature) {
  for (const std::uint64_t word : std::bit_cast<std::array<std::uint64_t, 2>>(signature)) {
    before = (before ^ word) * 0x9e37'79b9'7f4a'7c15u;
    before ^= before >> 29;
  }
  return before;
}

/// A summary that one thread writes and any thread or process reads. Zero-filled memory is the summary of no calls.
class SharedCallSummary {
 public:
  void store(const CallSummary& summary) {
    const auto words = std::bit_cast<Words>(summary);
    // An odd version marks a write under way. Release order keeps the data after the odd number and the even number
    // after the data.
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
  }

  /// Nothing while a write is under way: ask again.
  std::optional<CallSummary> load() const {
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    Words words;
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = words_[i].load(std::memory_order_acquire);
    if (version % 2 != 0 || version_.load(std::memory_order_relaxed) != version) return std::nullopt;
    return std::bit_cast<CallSummary>(words);
  }

 private:
  using Words = std::array<std::uint64_t, 4>;
  std::atomic<std::uint64_t> version_;
  std::array<std::atomic<std::uint64_t>, 4> words_;
};

}  // namespace tutti
