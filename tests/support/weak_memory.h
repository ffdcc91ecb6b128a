// Memory as a GPU may show it: stores arrive late and out of order, loads may be of lines that were read before.
//
// Strict enough that what is ordered by barrier, release and acquire always comes out right; an x86 host alone would
// hide that something was not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/random.h"

namespace tutti::testing {

class WeakMemory {
 public:
  WeakMemory(int blocks, int threads_per_block, std::uint64_t seed);

  void load(int block, int thread, const void* from, void* to, std::size_t bytes);
  /// Stays with the thread for a while.
  void store(int block, int thread, void* to, const void* from, std::size_t bytes);
  /// The same of a word that others may look at, which is to be noticed when it arrives.
  void store_word(int block, int thread, void* to, const void* from, std::size_t bytes);
  /// Memory as all see it, and this thread's own stores.
  void load_word(int block, int thread, const void* from, void* to, std::size_t bytes);

  void acquire(int block);              ///< what was read before is read anew
  void release(int block, int thread);  ///< what the thread has stored, and its block before the last barrier
  void barrier(int block);              ///< all threads' stores are the block's now
  void drain();                         ///< all stores arrive
  void drain_some();                    ///< perhaps one

  /// How often a word that others may look at has changed.
  std::uint64_t version() const { return version_; }
  void word_changed() { ++version_; }

 private:
  struct Pending {
    std::uintptr_t at = 0;
    std::uint32_t bytes = 0;
    bool word = false;
    std::array<std::byte, 16> data = {};
  };
  using Buffer = std::vector<Pending>;
  struct Line {
    std::uintptr_t at = 0;
    std::uint32_t age = 0;
    std::array<std::byte, 16> data = {};
  };
  static constexpr std::size_t lines = 512;

  Buffer& of(int block, int thread) { return own_[static_cast<std::size_t>(block * threads_ + thread)]; }
  void add(int block, int thread, const Pending& store);
  void arrive(int block, const Pending& store);
  void drain_one(int block, Buffer& own, Buffer* older);
  void drain_all(int block, Buffer& buffer);
  Line& line(int block, std::uintptr_t at) {
    return cached_[static_cast<std::size_t>(block) * lines + at / 16 % lines];
  }
  static void overlay(const Buffer& buffer, std::uintptr_t at, std::byte* to, std::size_t bytes);
  static bool overlap(const Pending& a, const Pending& b) { return a.at < b.at + b.bytes && b.at < a.at + a.bytes; }

  int threads_;
  Random random_;
  std::vector<Buffer> own_;     // by thread of a block: since its last barrier
  std::vector<Buffer> shared_;  // by block: before it
  std::vector<Line> cached_;
  std::vector<std::uint32_t> age_;  // by block: lines of another age are read anew
  std::uint64_t version_ = 0;
};

}  // namespace tutti::testing
