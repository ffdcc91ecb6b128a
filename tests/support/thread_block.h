// A kernel's block as real threads, so that ThreadSanitizer sees every access: bulk data is plain, words are atomics.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "kernels/block.h"

namespace tutti::testing {

/// What the threads of one block share.
class BlockTeam {
 public:
  explicit BlockTeam(int threads) : threads_(threads) {}

  int threads() const { return threads_; }
  bool sync(bool vote) {
    std::unique_lock lock(mutex_);
    vote_ = vote_ || vote;
    if (++arrived_ == threads_) {
      outcome_ = vote_;
      vote_ = false;
      arrived_ = 0;
      ++generation_;
      all_here_.notify_all();
    } else {
      all_here_.wait(lock, [this, mine = generation_] { return generation_ != mine; });
    }
    return outcome_;  // the next barrier cannot end before this thread has left
  }

 private:
  const int threads_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  int arrived_ = 0;
  unsigned generation_ = 0;
  bool vote_ = false;
  bool outcome_ = false;
};

template <device::Fault Built = device::Fault::none>
class ThreadBlock {
 public:
  static constexpr device::Fault fault = Built;

  ThreadBlock(BlockTeam& team, int thread, int block)
      : team_(team), thread_(thread), block_(block), random_(static_cast<unsigned>(thread + 31 * block + 1)) {}

  int thread() const { return thread_; }
  int threads() const { return team_.threads(); }
  int block() const { return block_; }
  void sync(device::Barrier) { team_.sync(false); }
  bool sync_any(bool vote) { return team_.sync(vote); }

  template <int Bytes>
  device::Pack<Bytes> load(const void* from) {
    device::Pack<Bytes> pack;
    std::memcpy(&pack, from, sizeof pack);
    return pack;
  }
  template <int Bytes>
  void store(void* to, device::Pack<Bytes> pack) {
    std::memcpy(to, &pack, sizeof pack);
  }
  std::uint64_t load_acquire(const std::uint64_t* from) { return __atomic_load_n(from, __ATOMIC_ACQUIRE); }
  template <class Word>
  Word load_relaxed(const Word* from) {
    return __atomic_load_n(from, __ATOMIC_RELAXED);
  }
  template <class Word>
  void store_release(Word* to, Word value) {
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
  }
  template <class Word>
  void store_relaxed(Word* to, Word value) {
    __atomic_store_n(to, value, __ATOMIC_RELAXED);
  }

  device::FlaggedWord load_flagged(const void* from) {
    std::uint64_t halves[2];
    const auto* const words = static_cast<const std::uint64_t*>(from);
    const unsigned first = coin();
    halves[first] = load_relaxed(words + first);
    halves[1 - first] = load_relaxed(words + 1 - first);
    device::FlaggedWord word;
    std::memcpy(&word, halves, sizeof word);
    return word;
  }
  void store_flagged(void* to, device::FlaggedWord word) {
    std::uint64_t halves[2];
    std::memcpy(halves, &word, sizeof word);
    auto* const words = static_cast<std::uint64_t*>(to);
    const unsigned first = coin();
    store_relaxed(words + first, halves[first]);
    store_relaxed(words + 1 - first, halves[1 - first]);
  }

  std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  void pause() { std::this_thread::yield(); }

 private:
  unsigned coin() { return (random_ = random_ * 1664525u + 1013904223u) >> 31; }

  BlockTeam& team_;
  int thread_;
  int block_;
  unsigned random_;
};

}  // namespace tutti::testing
