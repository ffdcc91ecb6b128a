// A queue of events in order of time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tutti::simulator {

/// Events with equal times come out in the order in which they went in, so that every run of a simulation is the same.
///
/// Ranks that do the same work create events in order of time: these form a line, which costs nothing. An event earlier
/// than the end of the line goes to a heap with four children per node: it has half the levels of a binary heap, and
/// children are adjacent.
template <class T>
class EventQueue {
 public:
  bool empty() const { return first_ == line_.size() && heap_.empty(); }
  // The following functions require !empty().
  double next() const { return from_line() ? line_[first_].time : heap_.front().time; }
  const T& top() const { return from_line() ? line_[first_].value : heap_.front().value; }

  void push(double time, T value) {
    const Event event{time, pushed_++, std::move(value)};
    if (first_ == line_.size() || line_.back().time <= time) {
      make_room();
      line_.push_back(event);
      return;
    }
    std::size_t at = heap_.size();
    heap_.push_back(event);
    for (; at > 0 && before(event, heap_[parent(at)]); at = parent(at)) heap_[at] = heap_[parent(at)];
    heap_[at] = event;
  }

  T pop() {
    if (from_line()) return line_[first_++].value;
    T value = heap_.front().value;
    const Event last = heap_.back();
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
  bool from_line() const { return first_ < line_.size() && (heap_.empty() || before(line_[first_], heap_.front())); }

  /// Removes the events that have left once they are half of the line.
  void make_room() {
    if (first_ < 1024 || 2 * first_ < line_.size()) return;
    line_.erase(line_.begin(), line_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
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

  std::vector<Event> line_;  // [first_, end): in order of time
  std::size_t first_ = 0;
  std::vector<Event> heap_;
  std::uint64_t pushed_ = 0;
};

}  // namespace tutti::simulator
