// Of how many ranks' inputs each block of a schedule is the sum: what averages halve by.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plan/cells.h"
#include "plan/schedule.h"

namespace tutti {

/// Counted step by step, of the ranks that the schedule is about; all 0 for collectives that do not average. In a
/// proven schedule no input is counted twice.
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
