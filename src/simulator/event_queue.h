// Events in the order of their times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tutti::simulator {

/// Events of equal times come out in the order in which they went in, so that a simulation is the same every time.
/// A heap of four children a node: half the levels of a binary one, and children are in one or two cache lines.
template <class T>
class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  double next() const { return heap_.front().time; }  ///< requires !empty(), as do top and pop
  const T& top() const { return heap_.front().value; }

  void push(double time, T value) {
    const Event event{time, pushed_++, std::move(value)};
    std::size_t at = heap_.size();
    heap_.push_back(event);
    for (; at > 0 && before(event, heap_[parent(at)]); at = parent(at)) heap_[at] = heap_[parent(at)];
    heap_[at] = event;
  }

  T pop() {
    T value = std::move(heap_.front().value);
    const Event last = std::move(heap_.back());
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return value;
  }

 private:
  struct Event {
    double time;
    std::uint64_t number;
    T value;
  };
  static constexpr std::size_t parent(std::size_t at) { return (at - 1) / 4; }
  static bool before(const Event& a, const Event& b) {
    return a.time < b.time || (a.time == b.time && a.number < b.number);
  }

  void sink(const Event& event) {
    std::size_t at = 0;
    for (std::size_t child = 1; child < heap_.size(); child = 4 * at + 1) {
      std::size_t least = child;
      for (std::size_t other = child + 1; other < std::min(child + 4, heap_.size()); ++other)
        if (before(heap_[other], heap_[least])) least = other;
      if (!before(heap_[least], event)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = event;
  }

  std::vector<Event> heap_;
  std::uint64_t pushed_ = 0;
};

}  // namespace tutti::simulator
