// The last calls of a rank, for those who look for one that differs from a peer's.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "transport/call_line.h"

namespace tutti {

/// A call as ranks of several hosts name it to one another.
struct CallMark {
  std::uint64_t sequence = 0;  ///< of the communicator's collective calls, from 1
  Signature signature;
};
static_assert(sizeof(CallMark) == 24);

/// One thread adds, any thread asks. What is just being overwritten is not found.
class CallHistory {
 public:
  static constexpr std::size_t kept = 64;

  void add(const CallMark& mark) {
    Entry& entry = entries_[mark.sequence % kept];
    const auto words = std::bit_cast<Words>(mark.signature);
    // Release keeps the words behind the 0, and the number behind the words.
    entry.sequence.store(0, std::memory_order_relaxed);
    for (std::size_t i = 0; i < words.size(); ++i) entry.words[i].store(words[i], std::memory_order_release);
    entry.sequence.store(mark.sequence, std::memory_order_release);
    latest_.store(mark.sequence, std::memory_order_release);
  }

  std::uint64_t latest() const { return latest_.load(std::memory_order_acquire); }

  std::optional<CallMark> find(std::uint64_t sequence) const {
    const Entry& entry = entries_[sequence % kept];
    if (sequence == 0 || entry.sequence.load(std::memory_order_acquire) != sequence) return std::nullopt;
    Words words;
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = entry.words[i].load(std::memory_order_acquire);
    if (entry.sequence.load(std::memory_order_relaxed) != sequence) return std::nullopt;
    return CallMark{.sequence = sequence, .signature = std::bit_cast<Signature>(words)};
  }

  /// All that are kept, in their order.
  std::vector<CallMark> all() const {
    std::vector<CallMark> marks;
    const std::uint64_t last = latest();
    for (std::uint64_t sequence = last - std::min<std::uint64_t>(last, kept) + 1; sequence <= last; ++sequence)
      if (const auto mark = find(sequence)) marks.push_back(*mark);
    return marks;
  }

 private:
  using Words = std::array<std::uint64_t, 2>;
  struct Entry {
    std::atomic<std::uint64_t> sequence = 0;
    std::array<std::atomic<std::uint64_t>, 2> words{};
  };
  std::array<Entry, kept> entries_;
  std::atomic<std::uint64_t> latest_ = 0;
};

}  // namespace tutti
