// Samples of work by one or two threads, with other programs' interruptions left out.
#pragma once

#include <array>
#include <cstddef>
#include <functional>

#include "tune/workers.h"

namespace tutti {

/// The numbers that a measurement samples, and the memory that it samples them on. Each member has its own memory,
/// touched by itself.
class Sampler {
 public:
  using Sample = Workers::Sample;

  /// `memory`: of each member, `bytes` each.
  /// `until_ns`: see Workers.
  Sampler(const cpu_set_t& cpus, std::array<std::byte*, 2> memory, std::size_t bytes, std::int64_t until_ns)
      : workers_(cpus, until_ns), memory_(memory), bytes_(bytes) {}

  /// Finds out what starting together costs, then touches the memory. Before the memory is touched, by far the longest
  /// part when other programs run, it is known whether they do.
  void begin();

  int members() const { return workers_.members(); }
  /// `which` other than the members wraps around, so that a machine with one core measures its own memory alone.
  std::byte* memory(std::size_t which) const { return memory_[which % static_cast<std::size_t>(members())]; }
  std::size_t bytes() const { return bytes_; }

  /// As Workers::run, without the time for starting together and waiting for each other.
  Sample run(const std::function<void(int)>& work);
  Sample hop(int rounds) { return workers_.hop(rounds); }

  /// The best of as many undisturbed samples as fit in 1 ms. A time slice of other work is as long as the longest
  /// samples, so a number may need several attempts.
  double best_of(const std::function<Sample()>& once);
  /// The median of five undisturbed samples, after `uncounted` ones: for work that leaves caches in another state than
  /// it finds, and whose stores reach memory later.
  double median_of(std::size_t uncounted, const std::function<Sample()>& once);

  /// Other programs left no time for some number, or all of them took too long: nothing more is measured.
  bool disturbed() const { return disturbed_; }
  /// Other programs ran now and then: the numbers are of a machine that does other work.
  bool loaded() const { return interrupted_ * loaded_share > samples_; }

 private:
  static constexpr int loaded_share = 10;
  Sample take(const std::function<Sample()>& once);

  Workers workers_;
  std::array<std::byte*, 2> memory_;
  std::size_t bytes_;
  double start_s_ = 0;
  bool disturbed_ = false;
  int samples_ = 0;
  int interrupted_ = 0;  // of them
};

}  // namespace tutti
