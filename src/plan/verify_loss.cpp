// Follows one contribution through a schedule that was refused.
#include "plan/verify_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/cells.h"

namespace tutti {
namespace {

constexpr int none = -1;

/// What a block holds from one write to the next.
struct Value {
  Rank rank = 0;
  Ref at;
  int step = none;
  bool has = false;     // the contribution
  int before = none;    // the value that it replaced
  int operands = none;  // the first of its edges
};
struct Edge {
  int value = none;
  int next = none;
};

class Trace {
 public:
  Trace(const Schedule& schedule, Contribution lost) : cells_(schedule, false), current_(cells_.size(), none) {
    values_.push_back({.rank = lost.rank, .at = {Buffer::input, lost.block}, .has = true});
    current_[cells_.at(lost.rank, values_[0].at)] = 0;
    for_each_step(schedule, [this](std::span<const Transfer> transfers) { step(transfers); });
  }

  int last(Rank rank, Ref ref) const { return current_[cells_.at(rank, ref)]; }
  const Value& operator[](int value) const { return values_[static_cast<std::size_t>(value)]; }
  int overwritten(int last) const;
  int first_of(int last, Rank rank) const;
  int farthest(const Schedule& schedule, Rank to) const;

 private:
  void step(std::span<const Transfer> transfers);
  std::vector<int> chain(int last) const;
  void latest_loss(int value, int& found) const;

  Cells cells_;
  std::vector<int> current_;   // value by cell; none: not written, and not the contribution
  std::vector<Value> values_;  // the contribution, then in the order of writes
  std::vector<Edge> edges_;
};

/// All sources are read before anything is written.
void Trace::step(std::span<const Transfer> transfers) {
  std::vector<int> read;
  for (const Transfer& t : transfers) read.push_back(current_[cells_.at(t.from, t.src)]);
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Transfer& t = transfers[i];
    int& at = current_[cells_.at(t.to, t.dst)];
    if (at == none || values_[static_cast<std::size_t>(at)].step != t.step) {  // else one more operand
      values_.push_back({.rank = t.to, .at = t.dst, .step = t.step, .before = at});
      at = static_cast<int>(values_.size()) - 1;
    }
    if (read[i] == none) continue;
    Value& value = values_[static_cast<std::size_t>(at)];
    value.has = value.has || values_[static_cast<std::size_t>(read[i])].has;
    edges_.push_back({.value = read[i], .next = value.operands});
    value.operands = static_cast<int>(edges_.size()) - 1;
  }
}

void Trace::latest_loss(int value, int& found) const {
  const Value& v = (*this)[value];
  const bool lost = !v.has && v.before != none && (*this)[v.before].has;
  if (lost && (found == none || (*this)[found].step < v.step)) found = value;
}

/// A value and all that it was made of, as far as they do not have the contribution.
std::vector<int> Trace::chain(int last) const {
  std::vector<int> found;
  std::vector<char> seen(values_.size());
  std::vector<int> waiting;
  if (last != none) waiting.push_back(last);
  while (!waiting.empty()) {
    const int value = waiting.back();
    waiting.pop_back();
    if (std::exchange(seen[static_cast<std::size_t>(value)], char{1}) != 0) continue;
    found.push_back(value);
    for (int edge = (*this)[value].operands; edge != none; edge = edges_[static_cast<std::size_t>(edge)].next)
      waiting.push_back(edges_[static_cast<std::size_t>(edge)].value);
  }
  return found;
}

/// The latest write, of the block or of what was written to it, that replaced a value with the contribution; none:
/// there is no such write.
int Trace::overwritten(int last) const {
  int found = none;
  for (int value = last; value != none; value = (*this)[value].before) latest_loss(value, found);
  for (const int value : chain(last)) latest_loss(value, found);
  return found;
}

/// The first write to a rank's memory of what became the last value, but not that itself; none: there is none.
int Trace::first_of(int last, Rank rank) const {
  int found = none;
  for (const int value : chain(last))
    if (value != last && (*this)[value].rank == rank && (found == none || (*this)[value].step < (*this)[found].step))
      found = value;
  return found;
}

/// The latest value with the contribution: of that rank, else of one that sends to it, else of any; none: nothing reads
/// it.
int Trace::farthest(const Schedule& schedule, Rank to) const {
  std::vector<int> nearness(static_cast<std::size_t>(schedule.ranks()));
  for (const Transfer& t : schedule.transfers())
    if (t.to == to) nearness[static_cast<std::size_t>(t.from)] = 1;
  nearness[static_cast<std::size_t>(to)] = 2;
  const auto key = [&](int value) {
    return std::tuple(nearness[static_cast<std::size_t>((*this)[value].rank)], (*this)[value].step);
  };
  int found = none;
  for (int value = 1; value < static_cast<int>(values_.size()); ++value)
    if ((*this)[value].has && (found == none || key(found) < key(value))) found = value;
  return found;
}

}  // namespace

std::string text(Ref ref) {
  static constexpr std::string_view names[] = {"input", "output", "scratch"};
  return fmt::format("{} block {}", names[static_cast<int>(ref.buffer)], ref.block);
}

std::string loss_text(const Schedule& schedule, Contribution lost, Rank to, int block, const NameOfWrite& name) {
  const Trace trace(schedule, lost);
  const auto where = [&](int value) {
    const std::string named = name(trace[value].step, trace[value].rank, trace[value].at);
    return named.empty() ? "at the end" : named;
  };
  const int last = trace.last(to, {Buffer::output, block});
  const int overwritten = trace.overwritten(last);
  std::string said;
  if (overwritten != none) {
    const Value& value = trace[overwritten];
    said = fmt::format(": {} of rank {} had it until it was overwritten {}", text(value.at), value.rank,
                       where(overwritten));
  } else if (const int farthest = trace.farthest(schedule, to); farthest != none) {
    const Value& value = trace[farthest];
    said = fmt::format(": it came to {} of rank {} {}, and not from there to {}", text(value.at), value.rank,
                       where(farthest), value.rank == to ? std::string("the block") : fmt::format("rank {}", to));
  } else {
    said = ": no transfer reads it";
    // A sum that comes through the rank whose contribution it lacks: it should have been added there.
    if (const int through = reduces(schedule.collective()) ? trace.first_of(last, lost.rank) : none; through != none)
      said += fmt::format("; {} of rank {} went on without it {}", text(trace[through].at), lost.rank, where(through));
  }
  if (last == none || last == overwritten) return said;  // said already
  const std::string named = name(trace[last].step, to, trace[last].at);
  return named.empty() ? said : fmt::format("{}; the block was last written {}", said, named);
}

}  // namespace tutti
