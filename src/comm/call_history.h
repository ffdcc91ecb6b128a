// The last calls of a rank, kept to compare them with a peer's calls.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>

#include "transport/call_summary.h"

namespace tutti {

/// One thread adds, any thread may read. An entry that is being overwritten is not found.
class CallHistory {
 public:
  /// Enough for some tenths of a second of the smallest calls through sockets: longer than ranks take to compare them.
  static constexpr std::size_t kept = 8192;

  /// The memory's pages are allocated by the kernel as calls are added.
  CallHistory() : entries_(static_cast<SharedCallSummary*>(std::calloc(kept, sizeof(SharedCallSummary)))) {
    if (entries_ == nullptr) throw std::bad_alloc();
  }

  /// Adds the next call; returns the summary of all calls including it.
  CallSummary add(const CallMark& mark) {
    hash_ = hash_on(hash_, mark.signature);
    const CallSummary summary{.last = mark, .hash = hash_};
    entries_[mark.sequence % kept].store(summary);
    latest_.store(mark.sequence, std::memory_order_release);
    return summary;
  }

  std::uint64_t latest() const { return latest_.load(std::memory_order_acquire); }

  /// The summary after the latest call; empty before the first call, or while the next one is being added.
  std::optional<CallSummary> last() const { return find(latest()); }

  /// The summary at call `sequence`; empty if it is not kept any more, or not made yet.
  std::optional<CallSummary> find(std::uint64_t sequence) const {
    const auto found = entries_[sequence % kept].load();
    if (sequence == 0 || !found || found->sequence() != sequence) return std::nullopt;
    return found;
  }

 private:
  struct Free {
    void operator()(SharedCallSummary* entries) const { std::free(entries); }
  };
  std::unique_ptr<SharedCallSummary[], Free> entries_;
  std::uint64_t hash_ = 0;  // used by the adding thread
  std::atomic<std::uint64_t> latest_ = 0;
};

}  // namespace tutti
