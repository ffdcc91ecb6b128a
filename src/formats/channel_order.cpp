// In which orders the instructions of all channels may run, and whether the order matters.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string_view>
#include <utility>

#include "formats/channels.h"
#include "formats/source.h"

namespace tutti::formats {
namespace {

/// What each instruction waits for: the previous one in its channel, and those that it names.
std::vector<std::vector<int>> waits(const ChannelProgram& program) {
  std::vector<std::vector<int>> before(program.instructions.size());
  std::vector<int> last(index(program.channels), -1);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    before[i] = instruction.after;
    before[i].insert(before[i].end(), instruction.behind.begin(), instruction.behind.end());
    int& previous = last[index(instruction.channel)];
    if (previous >= 0) before[i].push_back(previous);
    previous = static_cast<int>(i);
  }
  return before;
}

/// Going back from a stuck instruction along stuck ones ends in a cycle.
Error circle(const ChannelProgram& program, const std::vector<std::vector<int>>& before,
             const std::vector<int>& missing) {
  int at = static_cast<int>(std::ranges::find_if(missing, [](int count) { return count > 0; }) - missing.begin());
  std::vector<char> seen(missing.size());
  const auto stuck = [&](int i) { return missing[index(i)] > 0; };
  while (!seen[index(at)]) {
    seen[index(at)] = 1;
    at = *std::ranges::find_if(before[index(at)], stuck);
  }
  std::string what = "waits for itself";
  const int first = at;
  constexpr int shown_max = 6;
  for (int shown = 0; shown < shown_max; ++shown) {
    at = *std::ranges::find_if(before[index(at)], stuck);
    if (at == first) break;
    what += fmt::format("{} ({})", shown == 0 ? ", through" : ",", program.where_of(at));
    if (shown == shown_max - 1) what += " and more";
  }
  return refused(program.where_of(first), what);
}

/// The instructions that precede an instruction: the last one of each relevant channel. Sorted by channel.
class Clock {
 public:
  void join(const Clock& other, long& work) {
    work += static_cast<long>(ticks_.size() + other.ticks_.size());
    std::vector<Tick> both;
    both.reserve(ticks_.size() + other.ticks_.size());
    auto a = ticks_.begin();
    for (const Tick& tick : other.ticks_) {
      while (a != ticks_.end() && a->first < tick.first) both.push_back(*a++);
      if (a != ticks_.end() && a->first == tick.first)
        both.push_back(std::max(*a++, tick));
      else
        both.push_back(tick);
    }
    both.insert(both.end(), a, ticks_.end());
    ticks_ = std::move(both);
  }
  void set(int channel, int instruction) {
    const auto at = find(channel);
    if (at != ticks_.end() && at->first == channel)
      ticks_[static_cast<std::size_t>(at - ticks_.begin())].second = instruction;
    else
      ticks_.insert(at, {channel, instruction});
  }
  bool covers(int channel, int instruction) const {
    const auto at = find(channel);
    return at != ticks_.end() && at->first == channel && at->second >= instruction;
  }
  std::size_t size() const { return ticks_.size(); }

 private:
  // channel, instruction: the instructions of a channel are numbered in ascending order
  using Tick = std::pair<int, int>;
  std::vector<Tick>::const_iterator find(int channel) const {
    return std::ranges::lower_bound(ticks_, channel, {}, &Tick::first);
  }
  std::vector<Tick> ticks_;
};

class RaceFinder {
 public:
  explicit RaceFinder(const ChannelProgram& program)
      : program_(program),
        channels_(index(program.channels)),
        kept_(program.instructions.size()),
        wanted_(program.instructions.size()),
        accesses_(index(program.memory.size())) {
    for (const Instruction& instruction : program.instructions)
      for (const int before : instruction.after) ++wanted_[index(before)];
  }

  Result<void> run(const std::vector<int>& order) {
    for (const int i : order) TUTTI_TRY(run(i));
    return end();
  }

 private:
  struct Accesses {
    int write = -1;
    std::vector<int> reads = {};  // since the last write, the last read of each channel
  };

  Result<void> run(int i) {
    const Instruction& instruction = program_.instructions[index(i)];
    Clock& clock = channels_[index(instruction.channel)];
    clock.set(instruction.channel, i);
    for (const int before : instruction.after) {
      clock.join(kept_[index(before)], work_);
      if (--wanted_[index(before)] == 0) kept_[index(before)] = {};
    }
    for (const Move& move : instruction.moves) {
      for (const Cell source : move.sources) TUTTI_TRY(read(i, source, clock));
      TUTTI_TRY(write(i, move.destination, clock));
    }
    if (wanted_[index(i)] > 0) {
      kept_[index(i)] = clock;
      work_ += static_cast<long>(clock.size());
    }
    if (work_ > order_work_max)
      return refused(program_.where_of(i), "too many channels wait for each other to prove the plan free of races");
    return {};
  }

  Result<void> read(int i, Cell cell, const Clock& clock) {
    Accesses& accesses = accesses_[index(cell)];
    if (!ordered(accesses.write, clock)) return race(i, "reads", accesses.write, "writes", cell);
    const int channel = program_.instructions[index(i)].channel;
    const auto same_channel = [&](int other) { return program_.instructions[index(other)].channel == channel; };
    work_ += static_cast<long>(accesses.reads.size());
    std::erase_if(accesses.reads, same_channel);
    accesses.reads.push_back(i);
    return {};
  }

  Result<void> write(int i, Cell cell, const Clock& clock) {
    Accesses& accesses = accesses_[index(cell)];
    if (!ordered(accesses.write, clock)) return race(i, "writes", accesses.write, "writes", cell);
    for (const int other : accesses.reads)
      if (!ordered(other, clock)) return race(i, "writes", other, "reads", cell);
    accesses = {.write = i};
    return {};
  }

  /// When all channels of a rank have ended, its caller reads the output and may write the input.
  Result<void> end() {
    std::vector<Clock> ranks(index(program_.buffers.shape.ranks));
    std::vector<char> joined(channels_.size());
    for (const Instruction& instruction : program_.instructions)
      if (!std::exchange(joined[index(instruction.channel)], 1))
        ranks[index(instruction.position.rank)].join(channels_[index(instruction.channel)], work_);
    for (Cell cell = 0; cell < program_.memory.size(); ++cell) {
      const bool is_users = program_.memory.input_block(cell) >= 0 || program_.memory.output_block(cell) >= 0;
      const Clock& clock = ranks[index(program_.memory.rank(cell))];
      const Accesses& accesses = accesses_[index(cell)];
      if (!is_users) continue;
      if (!ordered(accesses.write, clock)) return too_late(accesses.write, "writes", cell);
      for (const int reader : accesses.reads)
        if (!ordered(reader, clock)) return too_late(reader, "reads", cell);
    }
    return {};
  }

  Error too_late(int i, std::string_view does, Cell cell) const {
    return refused(program_.where_of(i), fmt::format("{} a chunk of rank {}, which may have left the call by then",
                                                     does, program_.memory.rank(cell)));
  }

  /// Also if there is no earlier one.
  bool ordered(int earlier, const Clock& clock) const {
    return earlier < 0 || clock.covers(program_.instructions[index(earlier)].channel, earlier);
  }

  Error race(int i, std::string_view does, int other, std::string_view other_does, Cell cell) const {
    return refused(program_.where_of(i),
                   fmt::format("{} a chunk of rank {} that ({}) {}, and nothing orders the two", does,
                               program_.memory.rank(cell), program_.where_of(other), other_does));
  }

  const ChannelProgram& program_;
  std::vector<Clock> channels_;     // as of the last instruction run in each
  std::vector<Clock> kept_;         // of instructions that others still wait for
  std::vector<int> wanted_;         // number of instructions that still wait for it
  std::vector<Accesses> accesses_;  // by cell
  long work_ = 0;
};

}  // namespace

Result<std::vector<int>> execution_order(const ChannelProgram& program) {
  const std::vector<std::vector<int>> before = waits(program);
  std::vector<std::vector<int>> next(before.size());
  std::vector<int> missing(before.size());
  std::deque<int> ready;
  for (std::size_t i = 0; i < before.size(); ++i) {
    missing[i] = static_cast<int>(before[i].size());
    for (const int earlier : before[i]) next[index(earlier)].push_back(static_cast<int>(i));
    if (missing[i] == 0) ready.push_back(static_cast<int>(i));
  }
  std::vector<int> order;
  order.reserve(before.size());
  while (!ready.empty()) {
    order.push_back(ready.front());
    ready.pop_front();
    for (const int later : next[index(order.back())])
      if (--missing[index(later)] == 0) ready.push_back(later);
  }
  if (order.size() < before.size()) return circle(program, before, missing);
  return order;
}

Result<void> check_races(const ChannelProgram& program, const std::vector<int>& order) {
  return RaceFinder(program).run(order);
}

}  // namespace tutti::formats
