// A kernel's block as fibers: all threads of all blocks of a launch on one thread of the test, in turns made from a
// seed, on a memory as weak as a GPU's. The same seed gives the same run.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/block.h"
#include "support/fiber.h"
#include "support/random.h"
#include "support/weak_memory.h"

namespace tutti::testing {

struct FiberOptions {
  int blocks = 1;
  int threads = 2;  ///< of a block
  std::uint64_t seed = 1;
  /// Called when nobody can go on, though all have looked again, thousands of times, and at a clock that ran far ahead.
  /// May set an abort word. When nobody can go on after that, the launch is given up.
  std::function<void()> on_deadlock = [] {};
};

class FiberScheduler {
 public:
  FiberScheduler(const FiberOptions& options, const std::function<void(int block, int thread)>& body);

  /// Until all fibers have ended. False: some never did.
  bool run();

  // By fibers.
  bool barrier(int block, bool vote);
  void pause();    ///< until some word has changed
  void switch_();  ///< perhaps somebody else goes on
  int random(int bound) { return random_.below(bound); }
  std::uint64_t now_ns() { return now_ns_ += hurry_ ? leap_ns : 1; }
  WeakMemory& memory() { return memory_; }

 private:
  enum class State : std::uint8_t { ready, paused, at_barrier, ended };
  struct Thread {
    std::unique_ptr<Fiber> fiber;
    State state = State::ready;
    std::uint64_t seen = 0;  // paused: the version it saw
  };
  struct Team {
    int arrived = 0;
    bool vote = false;
    bool outcome = false;
  };
  static constexpr std::uint64_t leap_ns = 10'000'000'000;  // of the clock while nobody can go on
  bool may_run(const Thread& t) const {
    return t.state == State::ready || (t.state == State::paused && (hurry_ || t.seen != memory_.version()));
  }
  int pick();
  bool unblock();
  void leave(State state);

  FiberOptions options_;
  Random random_;
  WeakMemory memory_;
  std::vector<Thread> threads_;
  std::vector<Team> teams_;
  std::vector<int> runnable_;
  int current_ = 0;
  int left_;
  int favourite_ = -1;  // a block that goes on while it can,
  int victim_ = -1;     //   and one that does only when no other can
  std::uint64_t now_ns_ = 1;
  bool hurry_ = false;
  std::uint64_t hurry_version_ = 0;
  int looks_ = 0;
  int deadlocks_ = 0;
};

template <device::Fault Built = device::Fault::none>
class FiberBlock {
 public:
  static constexpr device::Fault fault = Built;

  /// `first`: the first block of the launch, where several launches run at the same time.
  FiberBlock(FiberScheduler& scheduler, int thread, int threads, int block, int first = 0)
      : scheduler_(scheduler), thread_(thread), threads_(threads), block_(block), first_(first) {}

  int thread() const { return thread_; }
  int threads() const { return threads_; }
  int block() const { return block_ - first_; }
  void sync(device::Barrier) { scheduler_.barrier(block_, false); }
  bool sync_any(bool vote) { return scheduler_.barrier(block_, vote); }

  template <int Bytes>
  device::Pack<Bytes> load(const void* from) {
    device::Pack<Bytes> pack;
    memory().load(block_, thread_, from, &pack, sizeof pack);
    return pack;
  }
  template <int Bytes>
  void store(void* to, device::Pack<Bytes> pack) {
    if (scheduler_.random(16) == 0) scheduler_.switch_();
    memory().store(block_, thread_, to, &pack, sizeof pack);
  }
  std::uint64_t load_acquire(const std::uint64_t* from) {
    const std::uint64_t value = load_relaxed(from);
    memory().acquire(block_);
    return value;
  }
  template <class Word>
  Word load_relaxed(const Word* from) {
    scheduler_.switch_();
    Word value;
    memory().load_word(block_, thread_, from, &value, sizeof value);
    return value;
  }
  template <class Word>
  void store_release(Word* to, Word value) {
    scheduler_.switch_();
    memory().release(block_, thread_);
    std::memcpy(to, &value, sizeof value);
    memory().word_changed();
    scheduler_.switch_();
  }
  template <class Word>
  void store_relaxed(Word* to, Word value) {
    memory().store_word(block_, thread_, to, &value, sizeof value);
    scheduler_.switch_();
  }

  device::FlaggedWord load_flagged(const void* from) {
    device::FlaggedWord word;
    const auto* const bytes = static_cast<const std::byte*>(from);
    auto* const to = reinterpret_cast<std::byte*>(&word);
    const int first = 8 * scheduler_.random(2);
    scheduler_.switch_();
    memory().load_word(block_, thread_, bytes + first, to + first, 8);
    if (scheduler_.random(8) == 0) scheduler_.switch_();
    memory().load_word(block_, thread_, bytes + 8 - first, to + 8 - first, 8);
    return word;
  }
  void store_flagged(void* to, device::FlaggedWord word) {
    const auto* const from = reinterpret_cast<const std::byte*>(&word);
    auto* const bytes = static_cast<std::byte*>(to);
    memory().store_word(block_, thread_, bytes, from, 8);
    memory().store_word(block_, thread_, bytes + 8, from + 8, 8);
    if (scheduler_.random(8) == 0) scheduler_.switch_();
  }

  std::uint64_t now_ns() { return scheduler_.now_ns(); }
  void pause() { scheduler_.pause(); }

 private:
  WeakMemory& memory() { return scheduler_.memory(); }

  FiberScheduler& scheduler_;
  int thread_;
  int threads_;
  int block_;
  int first_;
};

}  // namespace tutti::testing
