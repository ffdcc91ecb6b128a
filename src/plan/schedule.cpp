// Collects transfers into a schedule, and knows which buffers a collective has.
#include "plan/schedule.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/limits.h"

namespace tutti {

int in_place_block(Collective collective, int ranks, int parts, Rank rank, Rank root, int input_block) {
  if (output_groups(collective, ranks, rank, root) == 0) return -1;
  const int own_group = rank * parts;
  switch (facts_of(collective).in_place) {
    case InPlace::same: return input_block;
    case InPlace::input_in_output: return own_group + input_block;
    case InPlace::output_in_input: return input_block / parts == rank ? input_block - own_group : -1;
    case InPlace::by_copy:
    case InPlace::never: break;
  }
  return -1;
}

Schedule::Schedule(const Shape& shape, int parts)
    : collective_(shape.collective),
      ranks_(shape.ranks),
      root_(shape.root),
      parts_(parts),
      only_(shape.only),
      observer_(shape.observer),
      written_(ranks_, parts, only_ != Shape::everybody),
      operands_(only_ != Shape::everybody) {
  assert(observer_ == nullptr || only_ != Shape::everybody);
  assert(ranks_ >= 1 && ranks_ <= limits::ranks_max && root_ >= 0 && root_ < ranks_ && parts_ >= 1);
}

void Schedule::next_step() {
  written_.next_step();
  operands_.clear();
  if (only_ != Shape::everybody) steps_ = step_ + 1;
  step_ = steps_;
  if (observer_ == nullptr) return;
  observer_->on_step(*this, transfers_, std::exchange(times_, 1));
  transfers_.clear();
}

void Schedule::begin_step(int step) {
  assert(step >= step_);
  if (step == step_) return;
  next_step();
  if (observer_ != nullptr && step > step_) {  // in between the rank does nothing
    observer_->on_step(*this, {}, step - step_);
    steps_ = step;
  }
  step_ = step;
}

void Schedule::end_at(int steps) {
  if (only_ == Shape::everybody || steps_ >= steps) return next_step();
  begin_step(steps - 1);
  next_step();
}

void Schedule::copy(Rank from, Ref src, Rank to, Ref dst) {
  add({.step = step_, .from = from, .src = src, .to = to, .dst = dst, .kind = Kind::copy, .order = 0});
}

void Schedule::reduce(Rank from, Ref src, Rank to, Ref dst, int order, int inputs) {
  assert(inputs >= 1);
  add({.step = step_,
       .from = from,
       .src = src,
       .to = to,
       .dst = dst,
       .kind = Kind::reduce,
       .order = order,
       .inputs = inputs});
  if (!wanted(to)) return;  // its passes are another rank's
  if (operands_.add(to, dst) > limits::sources_max) chained_ = true;
}

void Schedule::reduce(Rank from, Rank to, int chunk, int inputs) {
  if (!keeps(from, to)) return;
  const Ref dst = landing(to, chunk);
  if (wanted(to) && written_.write(to, chunk)) reduce(to, held(to, chunk), to, dst, to);
  reduce(from, held(from, chunk), to, dst, from, inputs);
}

void Schedule::copy(Rank from, Rank to, int chunk) {
  if (!keeps(from, to)) return;
  if (wanted(to)) written_.write(to, chunk);
  copy(from, held(from, chunk), to, landing(to, chunk));
}

Ref Schedule::held(Rank rank, int chunk) const {
  const bool has_input = input_groups(collective_, ranks_, rank, root_) > 0;
  if (has_input && !(wanted(rank) && written_.before(rank, chunk))) return {Buffer::input, chunk};
  return landing(rank, chunk);
}

void Schedule::add(const Transfer& transfer) {
  assert(transfer.from >= 0 && transfer.from < ranks_ && transfer.to >= 0 && transfer.to < ranks_);
  if (!keeps(transfer.from, transfer.to)) return;
  for (const auto& [rank, ref] : {std::pair(transfer.from, transfer.src), std::pair(transfer.to, transfer.dst)})
    if (wanted(rank) && ref.buffer == Buffer::scratch)
      scratch_groups_ = std::max(scratch_groups_, ref.block / parts_ + 1);
  transfers_.push_back(transfer);
  steps_ = step_ + 1;
}

/// Where a value is stored when it is written.
Ref Schedule::landing(Rank rank, int chunk) const {
  const bool has_output = output_groups(collective_, ranks_, rank, root_) > 0;
  return {has_output ? Buffer::output : Buffer::scratch, chunk};
}

}  // namespace tutti
