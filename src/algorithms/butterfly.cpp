// The common part of algorithms whose ranks exchange with one partner after another, in log2 n steps.
#include "algorithms/butterfly.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <iterator>

namespace tutti {
namespace {

/// Where ranks sum up the blocks of a reduce-scatter: their own block in the output, other blocks in scratch.
class Sums {
 public:
  explicit Sums(const Butterfly& butterfly) : blocks_(static_cast<std::size_t>(butterfly.size())) {
    for (int i = 0; i < butterfly.size(); ++i)
      for (const int p : butterfly.folds(i) ? butterfly.ahead(i, 0) : butterfly.ahead(i, 1))
        for (const Rank block : butterfly.members(p))
          if (block != butterfly.rank(i)) blocks_[static_cast<std::size_t>(i)].push_back(block);
    for (std::vector<Rank>& blocks : blocks_) std::ranges::sort(blocks);
  }

  Ref at(int i, Rank own, Rank block) const {
    if (block == own) return {Buffer::output, 0};
    const std::vector<Rank>& blocks = blocks_[static_cast<std::size_t>(i)];
    const auto found = std::ranges::lower_bound(blocks, block);
    assert(found != blocks.end() && *found == block);
    return {Buffer::scratch, static_cast<int>(found - blocks.begin())};
  }

 private:
  std::vector<std::vector<Rank>> blocks_;  // of each participant: the blocks in scratch
};

void fold_in(Schedule& schedule, const Butterfly& butterfly, int chunks) {
  for (int i = 0; i < butterfly.folded(); ++i)
    for (int chunk = 0; chunk < chunks; ++chunk) schedule.reduce(butterfly.guest(i), butterfly.rank(i), chunk);
  schedule.next_step();
}

void fold_out(Schedule& schedule, const Butterfly& butterfly, int chunks) {
  for (int i = 0; i < butterfly.folded(); ++i)
    for (int chunk = 0; chunk < chunks; ++chunk) schedule.copy(butterfly.rank(i), butterfly.guest(i), chunk);
}

}  // namespace

Butterfly::Butterfly(int ranks, int (*partner_of)(int i, int step, int size))
    : ranks_(ranks),
      size_(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
      steps_(std::countr_zero(static_cast<unsigned>(size_))) {
  for (int step = 0; step < steps_; ++step)
    for (int i = 0; i < size_; ++i) partners_.push_back(partner_of(i, step, size_));
  ahead_.resize(at(0, steps_ + 1));
  for (int i = 0; i < size_; ++i) ahead_[at(i, steps_)] = {i};
  for (int step = steps_ - 1; step >= 0; --step)
    for (int i = 0; i < size_; ++i)
      std::ranges::merge(ahead(i, step + 1), ahead(partner(i, step), step + 1),
                         std::back_inserter(ahead_[at(i, step)]));
}

std::vector<Rank> Butterfly::members(int i) const {
  if (folds(i)) return {guest(i), rank(i)};
  return {rank(i)};
}

std::vector<int> Butterfly::contiguous() const {
  std::vector<int> numbers(static_cast<std::size_t>(size_));
  number(numbers, 0, 0, 0);
  return numbers;
}

/// Numbers ahead(i, step) from `first` on: those that `i` keeps, then those that its partner keeps.
void Butterfly::number(std::vector<int>& numbers, int i, int step, int first) const {
  if (step == steps_) {
    numbers[static_cast<std::size_t>(i)] = first;
    return;
  }
  number(numbers, i, step + 1, first);
  number(numbers, partner(i, step), step + 1, first + (size_ >> (step + 1)));
}

Schedule exchange_all(const Shape& shape, const Butterfly& butterfly) {
  Schedule schedule(shape, /*parts=*/1);
  fold_in(schedule, butterfly, 1);
  for (int step = butterfly.steps() - 1; step >= 0; --step, schedule.next_step()) {
    const auto held = [&](int i) {
      const bool is_input = step == butterfly.steps() - 1 && !butterfly.folds(i);
      return Ref{is_input ? Buffer::input : Buffer::output, 0};
    };
    for (int i = 0; i < butterfly.size(); ++i)
      for (const int from : {i, butterfly.partner(i, step)})
        schedule.reduce(butterfly.rank(from), held(from), butterfly.rank(i), {Buffer::output, 0},
                        butterfly.ahead(from, step + 1).front());
  }
  fold_out(schedule, butterfly, 1);
  return schedule;
}

Schedule halve_and_double(const Shape& shape, const Butterfly& butterfly, const std::vector<int>& chunk_of) {
  const int chunks = butterfly.size();
  Schedule schedule(shape, chunks);
  fold_in(schedule, butterfly, chunks);
  for (int step = 0; step < butterfly.steps(); ++step, schedule.next_step())
    for (int i = 0; i < butterfly.size(); ++i) {
      const int to = butterfly.partner(i, step);
      for (const int p : butterfly.ahead(to, step + 1))
        schedule.reduce(butterfly.rank(i), butterfly.rank(to), chunk_of[static_cast<std::size_t>(p)]);
    }
  for (int step = butterfly.steps() - 1; step >= 0; --step, schedule.next_step())
    for (int i = 0; i < butterfly.size(); ++i)
      for (const int p : butterfly.ahead(i, step + 1))
        schedule.copy(butterfly.rank(i), butterfly.rank(butterfly.partner(i, step)),
                      chunk_of[static_cast<std::size_t>(p)]);
  fold_out(schedule, butterfly, chunks);
  return schedule;
}

Schedule halve(const Shape& shape, const Butterfly& butterfly) {
  const Sums sums(butterfly);
  Schedule schedule(shape, /*parts=*/1);
  const auto add = [&](Rank from, Ref theirs, int to, Rank block, bool first) {
    const Rank at = butterfly.rank(to);
    const Ref sum = sums.at(to, at, block);
    schedule.reduce(at, first ? Ref{Buffer::input, block} : sum, at, sum, at);
    schedule.reduce(from, theirs, at, sum, from);
  };
  for (int i = 0; i < butterfly.folded(); ++i)
    for (Rank block = 0; block < shape.ranks; ++block) add(butterfly.guest(i), {Buffer::input, block}, i, block, true);
  schedule.next_step();
  for (int step = 0; step < butterfly.steps(); ++step, schedule.next_step())
    for (int i = 0; i < butterfly.size(); ++i) {
      const Rank from = butterfly.rank(i);
      const int to = butterfly.partner(i, step);
      const auto is_input = [&](int who) { return step == 0 && !butterfly.folds(who); };
      for (const int p : butterfly.ahead(to, step + 1))
        for (const Rank block : butterfly.members(p))
          add(from, is_input(i) ? Ref{Buffer::input, block} : sums.at(i, from, block), to, block, is_input(to));
    }
  for (int i = 0; i < butterfly.folded(); ++i)
    schedule.copy(butterfly.rank(i), sums.at(i, butterfly.rank(i), butterfly.guest(i)), butterfly.guest(i),
                  {Buffer::output, 0});
  return schedule;
}

Schedule double_up(const Shape& shape, const Butterfly& butterfly) {
  assert(butterfly.folded() == 0);
  Schedule schedule(shape, /*parts=*/1);
  for (Rank rank = 0; rank < shape.ranks; ++rank) schedule.copy(rank, {Buffer::input, 0}, rank, {Buffer::output, rank});
  for (int step = butterfly.steps() - 1; step >= 0; --step, schedule.next_step())
    for (Rank rank = 0; rank < shape.ranks; ++rank)
      for (const int group : butterfly.ahead(rank, step + 1))
        schedule.copy(rank, group == rank ? Ref{Buffer::input, 0} : Ref{Buffer::output, group},
                      butterfly.partner(rank, step), {Buffer::output, group});
  return schedule;
}

}  // namespace tutti
