// Right schedules that no one would write: random detours through outputs and scratch, then the result.
#pragma once

#include <vector>

#include "plan/schedule.h"
#include "support/random.h"

namespace tutti::testing {

/// Grows a schedule of an all-gather (values are copied) or an all-reduce (values are added), at most 8 ranks.
class RandomSchedule {
 public:
  RandomSchedule(Collective collective, Random& random)
      : random_(random),
        shape_{.collective = collective, .ranks = random.between(2, 6)},
        parts_(random.between(1, 3)),
        scratch_groups_(random.between(1, 2)),
        private_scratch_(random.chance(60)),
        schedule_(shape_, parts_) {
    for (Rank rank = 0; rank < shape_.ranks; ++rank)
      for (int part = 0; part < parts_; ++part) values_.push_back({rank, {Buffer::input, part}, part, 1u << rank});
  }

  Schedule make() {
    for (int step = random_.between(0, 4); step > 0; --step) wander();
    if (!gathers() && random_.chance(80)) add_up();
    finish();
    return schedule_;
  }

 private:
  /// A block that holds the contributions of `ranks` to `part` (an all-gather: of one rank).
  struct Value {
    Rank at;
    Ref ref;
    int part;
    unsigned ranks;
  };

  /// Windows show no scratch: without such reads more schedules can do with them.
  bool hidden(const Value& value, Rank to) const {
    return private_scratch_ && value.ref.buffer == Buffer::scratch && value.at != to;
  }
  bool gathers() const { return shape_.collective == Collective::all_gather; }
  int groups(Buffer buffer) const {
    return buffer == Buffer::scratch ? scratch_groups_ : output_groups(shape_.collective, shape_.ranks, 0, 0);
  }

  void wander() {
    landed_.clear();
    for (int tries = random_.between(1, (private_scratch_ ? 1 : 3) * shape_.ranks); tries > 0; --tries) {
      const Rank to = random_.below(shape_.ranks);
      const int part = random_.below(parts_);
      const Buffer buffer = random_.chance(gathers() ? 60 : 15) ? Buffer::output : Buffer::scratch;
      Ref dst{buffer, random_.below(groups(buffer)) * parts_ + part};
      if (taken(to, dst)) continue;
      std::vector<Value> operands;
      unsigned sum = 0;
      for (int i = gathers() ? 1 : random_.between(1, 4); i > 0; --i) {
        const Value& value = values_[static_cast<std::size_t>(random_.below(static_cast<int>(values_.size())))];
        if (value.part != part || (sum & value.ranks) != 0 || hidden(value, to)) continue;
        operands.push_back(value);
        sum |= value.ranks;
      }
      if (gathers() && !operands.empty() && buffer == Buffer::output && random_.chance(80)) {
        dst.block = static_cast<int>(rank_in(sum)) * parts_ + part;  // mostly where it belongs
        if (taken(to, dst)) continue;
      }
      write(to, dst, part, operands);
    }
    land();
  }

  /// Some rank adds up all inputs of a part, in output or scratch.
  void add_up() {
    landed_.clear();
    for (int part = 0; part < parts_; ++part) {
      std::vector<Value> inputs;
      for (const Value& value : values_)
        if (value.part == part && value.ref.buffer == Buffer::input) inputs.push_back(value);
      const Buffer buffer = random_.chance(50) ? Buffer::output : Buffer::scratch;
      write(random_.below(shape_.ranks), {buffer, part}, part, inputs);
    }
    land();
  }

  /// What is still missing in each output, from wherever it is, else from the inputs.
  void finish() {
    landed_.clear();
    for (Rank to = 0; to < shape_.ranks; ++to)
      for (int block = 0; block < groups(Buffer::output) * parts_; ++block) {
        const int part = block % parts_;
        const unsigned wanted = gathers() ? 1u << (block / parts_) : (1u << shape_.ranks) - 1;
        std::vector<Value> whole, inputs;
        bool there = false;
        for (const Value& value : values_) {
          if (value.part != part || (gathers() && hidden(value, to))) continue;
          there = there || (value.at == to && value.ref == Ref{Buffer::output, block} && value.ranks == wanted);
          if (value.ranks == wanted) whole.push_back(value);
          if (value.ref.buffer == Buffer::input) inputs.push_back(value);
        }
        if (there) continue;
        if (whole.empty()) {
          write(to, {Buffer::output, block}, part, inputs);
        } else {
          write(to, {Buffer::output, block}, part,
                {whole[static_cast<std::size_t>(random_.below(static_cast<int>(whole.size())))]});
        }
      }
  }

  void write(Rank to, Ref dst, int part, const std::vector<Value>& operands) {
    if (operands.empty()) return;
    unsigned sum = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Value& from = operands[i];
      if (operands.size() == 1 && random_.chance(50 + 50 * gathers()))
        schedule_.copy(from.at, from.ref, to, dst);
      else
        schedule_.reduce(from.at, from.ref, to, dst, static_cast<int>(i));
      sum |= from.ranks;
    }
    landed_.push_back({to, dst, part, sum});
  }

  bool taken(Rank to, Ref dst) const {
    for (const Value& value : landed_)
      if (value.at == to && value.ref == dst) return true;
    return false;
  }

  void land() {
    schedule_.next_step();
    for (const Value& value : landed_) {
      std::erase_if(values_, [&](const Value& old) { return old.at == value.at && old.ref == value.ref; });
      values_.push_back(value);
    }
  }

  static int rank_in(unsigned ranks) {
    int rank = 0;
    while (!(ranks >> rank & 1)) ++rank;
    return rank;
  }

  Random& random_;
  Shape shape_;
  int parts_;
  int scratch_groups_;
  bool private_scratch_;
  Schedule schedule_;
  std::vector<Value> values_;  // when the step began
  std::vector<Value> landed_;  // in this step
};

}  // namespace tutti::testing
