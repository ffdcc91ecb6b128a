// In which order a rank's calls run, and how far they are.
#pragma once

#include <atomic>
#include <cstdint>

namespace tutti {

/// Calls run one after another, in the order of their tickets; the collectives among them have numbers. Any thread,
/// where nothing else is said.
class CallOrder {
 public:
  /// `last_completed`: where peers read which collective this rank has completed last. Must outlive this object.
  explicit CallOrder(std::atomic<std::uint64_t>& last_completed) : last_completed_(last_completed) {}

  std::uint64_t take_ticket() { return issued_.fetch_add(1, std::memory_order_relaxed) + 1; }
  bool turn_of(std::uint64_t ticket) const { return completed() + 1 >= ticket; }
  void complete() { completed_.fetch_add(1, std::memory_order_acq_rel); }
  std::uint64_t completed() const { return completed_.load(std::memory_order_acquire); }
  bool idle() const { return completed() == issued_.load(std::memory_order_acquire); }

  /// For the call whose turn it is.
  std::uint64_t next_sequence() {
    const std::uint64_t next = entered() + 1;
    sequence_.store(next, std::memory_order_relaxed);
    return next;
  }
  /// The number of the last collective call that this rank has entered, or completed.
  std::uint64_t entered() const { return sequence_.load(std::memory_order_relaxed); }
  std::uint64_t last_completed() const { return last_completed_.load(std::memory_order_acquire); }
  /// For every collective that has succeeded, before its caller learns of it: peers that find this rank gone will know
  /// that it needs nothing more from them in this call, nor they from it.
  void note_completed(std::uint64_t sequence) { last_completed_.store(sequence, std::memory_order_release); }

 private:
  std::atomic<std::uint64_t> issued_ = 0;
  std::atomic<std::uint64_t> completed_ = 0;
  std::atomic<std::uint64_t> sequence_ = 0;  // written by the thread whose call's turn it is
  std::atomic<std::uint64_t>& last_completed_;
};

}  // namespace tutti
