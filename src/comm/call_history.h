// The last calls of a rank, for comparing them with a peer's.
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

/// One thread adds, any thread asks. What is just being overwritten is not found.
class CallHistory {
 public:
  /// Some tenths of a second of the smallest calls through sockets: longer than ranks take to compare them.
  static constexpr std::size_t kept = 8192;

  /// Pages are taken as calls come.
  CallHistory() : entries_(static_cast<SharedCallSummary*>(std::calloc(kept, sizeof(SharedCallSummary)))) {
    if (entries_ == nullptr) throw std::bad_alloc();
  }

  /// The next call; returns what the calls amount to with it.
  CallSummary add(const CallMark& mark) {
    hash_ = hash_on(hash_, mark.signature);
    const CallSummary summary{.last = mark, .hash = hash_};
    entries_[mark.sequence % kept].store(summary);
    latest_.store(mark.sequence, std::memory_order_release);
    return summary;
  }

  std::uint64_t latest() const { return latest_.load(std::memory_order_acquire); }

  /// What they amount to now; nothing before the first, or while the next one is being added.
  std::optional<CallSummary> last() const { return find(latest()); }

  /// What the calls amounted to at `sequence`; nothing where that is not kept any more, or has not come.
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
  std::uint64_t hash_ = 0;  // of the adding thread
  std::atomic<std::uint64_t> latest_ = 0;
};

}  // namespace tutti
