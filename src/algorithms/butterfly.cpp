// The common part of algorithms whose ranks exchange with one partner after another, in log2 n steps.
#include "algorithms/butterfly.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "algorithms/visits.h"

namespace tutti {
namespace {

/// The participants whose transfers are kept: all, or the one that the only rank is or that folds it.
std::pair<int, int> participants(const Schedule& schedule, const Butterfly& butterfly) {
  if (schedule.only() == Shape::everybody) return {0, butterfly.size()};
  const int i = butterfly.participant(schedule.only());
  return {i, i + 1};
}

/// Where ranks sum up the blocks of a reduce-scatter: their own block in the output, other blocks in scratch. Where a
/// schedule is about one rank, the places of others are of no interest.
class Sums {
 public:
  Sums(const Butterfly& butterfly, const Schedule& schedule) : blocks_(static_cast<std::size_t>(butterfly.size())) {
    const auto [begin, end] = participants(schedule, butterfly);
    for (int i = begin; i < end; ++i) {
      std::vector<Rank>& blocks = blocks_[static_cast<std::size_t>(i)];
      for (const int p : butterfly.folds(i) ? butterfly.ahead(i, 0) : butterfly.ahead(i, 1))
        for (const Rank block : butterfly.members(p))
          if (block != butterfly.rank(i)) blocks.push_back(block);
      std::ranges::sort(blocks);
    }
  }

  Ref at(int i, Rank own, Rank block) const {
    if (block == own) return {Buffer::output, 0};
    const std::vector<Rank>& blocks = blocks_[static_cast<std::size_t>(i)];
    if (blocks.empty()) return {Buffer::scratch, 0};
    const auto found = std::ranges::lower_bound(blocks, block);
    assert(found != blocks.end() && *found == block);
    return {Buffer::scratch, static_cast<int>(found - blocks.begin())};
  }

 private:
  std::vector<std::vector<Rank>> blocks_;  // of each participant: the blocks in scratch
};

/// A step, unless nobody is folded: calls `visit` with each participant that folds a rank, if the transfers between the
/// two are kept.
template <class Visit>
void fold_step(Schedule& schedule, const Butterfly& butterfly, Visit&& visit) {
  if (butterfly.folded() == 0) return;
  const auto [begin, end] = participants(schedule, butterfly);
  for (int i = begin; i < std::min(end, butterfly.folded()); ++i) visit(i);
  schedule.next_step();
}

void fold_in(Schedule& schedule, const Butterfly& butterfly, int chunks) {
  fold_step(schedule, butterfly, [&](int i) {
    for (int chunk = 0; chunk < chunks; ++chunk) schedule.reduce(butterfly.guest(i), butterfly.rank(i), chunk);
  });
}

void fold_out(Schedule& schedule, const Butterfly& butterfly, int chunks) {
  fold_step(schedule, butterfly, [&](int i) {
    for (int chunk = 0; chunk < chunks; ++chunk) schedule.copy(butterfly.rank(i), butterfly.guest(i), chunk);
  });
}

/// Calls `visit` with each participant and its partner in `step`, if the transfers between the two are kept.
template <class Visit>
void for_each_pair(const Schedule& schedule, const Butterfly& butterfly, int step, Visit&& visit) {
  if (schedule.only() == Shape::everybody) {
    for (int i = 0; i < butterfly.size(); ++i) visit(i, butterfly.partner(i, step));
    return;
  }
  const int i = butterfly.participant(schedule.only());
  if (schedule.only() != butterfly.rank(i)) return;  // it is folded
  visit(i, butterfly.partner(i, step));
  visit(butterfly.partner(i, step), i);
}

}  // namespace

Butterfly::Butterfly(int ranks, int (*partner_of)(int i, int step, int size))
    : ranks_(ranks),
      size_(size_for(ranks)),
      steps_(std::countr_zero(static_cast<unsigned>(size_))),
      partner_of_(partner_of) {}

std::vector<int> Butterfly::ahead(int i, int step) const {
  std::vector<int> met{i};
  met.reserve(static_cast<std::size_t>(size_ >> step));
  for (int now = step; now < steps_; ++now)
    for (std::size_t k = 0, known = met.size(); k < known; ++k) met.push_back(partner(met[k], now));
  std::ranges::sort(met);
  return met;
}

int Butterfly::first_ahead(int i, int step) const {
  if (step == steps_) return i;
  return std::min(first_ahead(i, step + 1), first_ahead(partner(i, step), step + 1));
}

int Butterfly::ranks_ahead(int i, int step) const {
  if (folded() == 0) return size_ >> step;
  if (step == steps_) return folds(i) ? 2 : 1;
  return ranks_ahead(i, step + 1) + ranks_ahead(partner(i, step), step + 1);
}

int Butterfly::ranks_behind(int i, int step) const {
  if (folded() == 0) return 1 << step;
  if (step == 0) return folds(i) ? 2 : 1;
  return ranks_behind(i, step - 1) + ranks_behind(partner(i, step - 1), step - 1);
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

int swing_partner(int i, int step, int size) {
  int distance = 1;
  for (int power = -2, k = 0; k < step; ++k, power *= -2) distance += power;
  return ((i % 2 == 0 ? i + distance : i - distance) % size + size) % size;
}

Schedule exchange_all(const Shape& shape, const Butterfly& butterfly) {
  Schedule schedule(shape, /*parts=*/1);
  fold_in(schedule, butterfly, 1);
  for (int step = butterfly.steps() - 1; step >= 0; --step, schedule.next_step()) {
    const auto held = [&](int i) {
      const bool is_input = step == butterfly.steps() - 1 && !butterfly.folds(i);
      return Ref{is_input ? Buffer::input : Buffer::output, 0};
    };
    for_each_pair(schedule, butterfly, step, [&](int i, int partner) {
      for (const int from : {i, partner})
        schedule.reduce(butterfly.rank(from), held(from), butterfly.rank(i), {Buffer::output, 0},
                        butterfly.first_ahead(from, step + 1), butterfly.ranks_ahead(from, step + 1));
    });
  }
  fold_out(schedule, butterfly, 1);
  return schedule;
}

Schedule halve_and_double(const Shape& shape, const Butterfly& butterfly, const std::vector<int>& chunk_of) {
  const int chunks = butterfly.size();
  Schedule schedule(shape, chunks);
  fold_in(schedule, butterfly, chunks);
  for (int step = 0; step < butterfly.steps(); ++step, schedule.next_step())
    for_each_pair(schedule, butterfly, step, [&](int i, int to) {
      const int inputs = butterfly.ranks_behind(i, step);
      for (const int p : butterfly.ahead(to, step + 1))
        schedule.reduce(butterfly.rank(i), butterfly.rank(to), chunk_of[static_cast<std::size_t>(p)], inputs);
    });
  for (int step = butterfly.steps() - 1; step >= 0; --step, schedule.next_step())
    for_each_pair(schedule, butterfly, step, [&](int i, int to) {
      for (const int p : butterfly.ahead(i, step + 1))
        schedule.copy(butterfly.rank(i), butterfly.rank(to), chunk_of[static_cast<std::size_t>(p)]);
    });
  fold_out(schedule, butterfly, chunks);
  return schedule;
}

Schedule halve(const Shape& shape, const Butterfly& butterfly) {
  Schedule schedule(shape, /*parts=*/1);
  const Sums sums(butterfly, schedule);
  const auto add = [&](Rank from, Ref theirs, int inputs, int to, Rank block, bool first) {
    const Rank at = butterfly.rank(to);
    const Ref sum = sums.at(to, at, block);
    schedule.reduce(at, first ? Ref{Buffer::input, block} : sum, at, sum, at);
    schedule.reduce(from, theirs, at, sum, from, inputs);
  };
  fold_step(schedule, butterfly, [&](int i) {
    for (Rank block = 0; block < shape.ranks; ++block)
      add(butterfly.guest(i), {Buffer::input, block}, 1, i, block, true);
  });
  for (int step = 0; step < butterfly.steps(); ++step, schedule.next_step()) {
    for_each_pair(schedule, butterfly, step, [&](int i, int to) {
      const Rank from = butterfly.rank(i);
      const int inputs = butterfly.ranks_behind(i, step);
      const auto is_input = [&](int who) { return step == 0 && !butterfly.folds(who); };
      for (const int p : butterfly.ahead(to, step + 1))
        for (const Rank block : butterfly.members(p))
          add(from, is_input(i) ? Ref{Buffer::input, block} : sums.at(i, from, block), inputs, to, block, is_input(to));
    });
  }
  fold_step(schedule, butterfly, [&](int i) {
    schedule.copy(butterfly.rank(i), sums.at(i, butterfly.rank(i), butterfly.guest(i)), butterfly.guest(i),
                  {Buffer::output, 0});
  });
  return schedule;
}

Schedule double_up(const Shape& shape, const Butterfly& butterfly) {
  assert(butterfly.folded() == 0);
  Schedule schedule = with_own_blocks(shape);
  for (int step = butterfly.steps() - 1; step >= 0; --step, schedule.next_step())
    for_each_pair(schedule, butterfly, step, [&](Rank rank, Rank to) {
      for (const int group : butterfly.ahead(rank, step + 1)) pass_on(schedule, group, rank, to);
    });
  return schedule;
}

int exchange_items(const Shape& shape, int) {
  const int size = Butterfly::size_for(shape.ranks), folded = shape.ranks - size;
  if (shape.collective == Collective::all_reduce && folded > 0) return size;
  if (shape.collective == Collective::reduce_scatter && folded > 0) return shape.ranks;
  return std::max(size / 2, 1);
}

}  // namespace tutti
