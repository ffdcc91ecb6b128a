// Numbers for the blocks of a schedule, and of how many ranks' inputs each is the sum.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plan/schedule.h"

namespace tutti {

/// Numbers every block of every rank, or of the only one that the schedule is about. In place, an input block has the
/// number of the output block whose memory it shares.
class Cells {
 public:
  Cells(const Schedule& schedule, bool in_place);
  std::size_t at(Rank rank, Ref ref) const {
    return numbers_[*begin(rank, ref.buffer) + static_cast<std::size_t>(ref.block)];
  }
  std::size_t size() const { return numbers_.size(); }
  /// How many blocks there are in that buffer.
  int blocks(Rank rank, Buffer buffer) const {
    return static_cast<int>(*(begin(rank, buffer) + 1) - *begin(rank, buffer));
  }

 private:
  const std::size_t* begin(Rank rank, Buffer buffer) const {
    return &first_[static_cast<std::size_t>(rank - first_rank_) * 3 + static_cast<std::size_t>(buffer)];
  }

  Rank first_rank_;
  std::vector<std::size_t> first_;  // by 3 * rank + buffer, and where the last one ends
  std::vector<std::size_t> numbers_;
};

/// Of how many ranks' inputs each block of a schedule is the sum: what averages halve by. Counted step by step, of the
/// ranks that the schedule is about; all 0 for collectives that do not average. In a proven schedule no input is
/// counted twice.
class Contributions {
 public:
  /// `cells`: not in place. Both outlive this.
  Contributions(const Schedule& schedule, const Cells& cells);

  int at(Rank rank, Ref ref) const { return inputs_.empty() ? 0 : inputs_[cells_.at(rank, ref)]; }
  /// Of the block that `t` moves in the next step.
  int moved_by(const Transfer& t) const { return inputs_.empty() || knows(t.from) ? at(t.from, t.src) : t.inputs; }
  /// All transfers of one step have taken place.
  void step(std::span<const Transfer> transfers);

 private:
  bool knows(Rank rank) const { return schedule_.only() == Shape::everybody || rank == schedule_.only(); }

  const Schedule& schedule_;
  const Cells& cells_;
  std::vector<int> inputs_;          // by cell
  std::vector<int> landing_;         // by cell: those that this step adds; no_landing between steps
  std::vector<std::size_t> landed_;  // cells of this step
};

}  // namespace tutti
