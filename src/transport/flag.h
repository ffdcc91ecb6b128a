// Counters in shared memory: the only place in the data plane that uses memory orders.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/limits.h"
#include "base/system.h"

namespace tutti {

/// A monotone counter with a cache line of its own. One writer; zero-filled memory is a valid flag.
struct alignas(limits::line_bytes) Flag {
  std::atomic<std::uint64_t> value;

  std::uint64_t load() const { return value.load(std::memory_order_acquire); }
  void store(std::uint64_t to) { value.store(to, std::memory_order_release); }
};

/// No load after it is made before a store before it.
inline void store_then_load() {
#if defined(__SANITIZE_THREAD__)  // which knows no fences; on the processors that it supports this orders as much
  std::atomic<int> own = 0;
  own.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// Where a rank sleeps: one word per rank, in its area, on a cache line of its own. Zero-filled memory is valid.
///
/// The sleeper sets the word, checks its condition again, then sleeps at most 10 ms. The signaller reads the word after
/// its store, without a fence: a wake-up can be lost, which costs those 10 ms. Where ranks outnumber cores
/// (`oversubscribed`) there is a fence, and no wake-up is lost.
struct alignas(limits::line_bytes) Doorbell {
  std::atomic<std::uint32_t> asleep;

  /// Call after the store that another rank may be waiting for.
  void ring(System& system, bool oversubscribed) {
    if (oversubscribed) store_then_load();
    ring_after_fence(system);
  }
  /// As ring, where a fence is not needed or has been made for several bells.
  void ring_after_fence(System& system) {
    if (asleep.load(std::memory_order_relaxed) == 0) return;
    asleep.store(0, std::memory_order_relaxed);
    system.wake(asleep);
  }
  /// The sleeper's half: the conditions that it checks afterwards are those after this mark. Fences on both sides give
  /// the order: either the signaller finds the sleeper, or the sleeper sees the signaller's store.
  void mark_asleep() {
    asleep.exchange(1, std::memory_order_seq_cst);
    store_then_load();
  }
};

/// One channel's pair of flags between two ranks: raises this rank's flag at the peer and waits for the peer's flag
/// here. The counts are never reset.
class Signal {
 public:
  Signal() = default;
  Signal(Flag& there, const Flag& here) : there_(&there), here_(&here) {}

  void raise() { there_->store(++raised_); }
  /// True if the peer has raised its flag more often than take() has returned true.
  bool take() {
    if (here_->load() <= taken_) return false;
    ++taken_;
    return true;
  }

 private:
  Flag* there_ = nullptr;
  const Flag* here_ = nullptr;
  std::uint64_t raised_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace tutti
