// The last calls of a rank, and those that peers have told, to be compared.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

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

/// Calls of a peer, in order, which it sent because it found that its calls differ from this rank's.
struct PeerCalls {
  int rank = 0;
  std::vector<CallMark> marks;
};

/// Those of all peers, in the parts in which they arrive, until they are compared.
class ToldCalls {
 public:
  /// False: these are no marks.
  bool add(int rank, std::span<const std::byte> words) {
    if (words.size() % sizeof(CallMark) != 0) return false;
    auto known = std::ranges::find(told_, rank, &PeerCalls::rank);
    if (known == told_.end()) known = told_.insert(told_.end(), {.rank = rank, .marks = {}});
    const std::size_t before = known->marks.size();
    const std::size_t count = words.size() / sizeof(CallMark);
    if (before + count > CallHistory::kept) return true;  // more than this rank can compare
    known->marks.resize(before + count);
    if (count > 0) std::memcpy(&known->marks[before], words.data(), words.size());
    return true;
  }
  std::vector<PeerCalls> take() { return std::exchange(told_, {}); }

 private:
  std::vector<PeerCalls> told_;
};

}  // namespace tutti
