// Every transfer of every rank, in steps. An algorithm returns a Schedule.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "plan/operand_counts.h"
#include "plan/ref.h"
#include "plan/types.h"
#include "plan/written_chunks.h"

namespace tutti {

enum class Kind : std::uint8_t { copy, reduce };

/// `from == to` is a local copy, or the receiver's own share of a reduction. All reduces of one step into one `dst` are
/// a single n-ary reduction, evaluated in ascending `order`. More than limits::sources_max operands form a chain of
/// passes: the first pass takes that many, each later one the result so far and the next sources_max - 1.
struct Transfer {
  int step = 0;
  Rank from = 0;
  Ref src;
  Rank to = 0;
  Ref dst;
  Kind kind = Kind::copy;
  int order = 0;
  /// With `Shape::only`, of a reduction's operand from another rank: of how many ranks' inputs it is the sum. Otherwise
  /// the transfers themselves tell.
  int inputs = 1;
  bool operator==(const Transfer&) const = default;
};

/// The output block that shares memory with `input_block` when `rank` works in place; -1: none.
int in_place_block(Collective collective, int ranks, int parts, Rank rank, Rank root, int input_block);

class Schedule;

/// See Shape::observer.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  /// `transfers`: all of the step; none if the rank does nothing in it. `times`: how many steps it stands for.
  virtual void on_step(const Schedule& schedule, std::span<const Transfer> transfers, int times) = 0;
};

/// Transfers of one step read the values at the beginning of the step; the step ends when all of them have been
/// written. All blocks that one rank sends to another in one step travel as one message, packed in the order in which
/// they were added.
///
/// With `Shape::only`, a schedule keeps the transfers from or to that rank, and leaves out all others; an algorithm
/// need not add them. Of a transfer, it is then right only about what that rank's plan depends on: at the other rank,
/// a place stands for any block of the same part.
class Schedule {
 public:
  Schedule(const Shape& shape, int parts);

  Collective collective() const { return collective_; }
  int ranks() const { return ranks_; }
  Rank root() const { return root_; }
  int parts() const { return parts_; }
  int steps() const { return steps_; }
  Rank only() const { return only_; }
  /// Whether transfers between these ranks are kept.
  bool keeps(Rank from, Rank to) const { return wanted(from) || wanted(to); }
  /// The scratch groups that transfers name, and one more for intermediate results if a reduction is a chain of passes.
  int scratch_groups() const { return scratch_groups_ + (chained_ ? 1 : 0); }
  bool chained() const { return chained_; }
  const std::vector<Transfer>& transfers() const { return transfers_; }

  /// Later transfers belong to the next step. A step without transfers is not counted; with `only` every step is, so
  /// algorithms must not begin one in which nobody does anything.
  void next_step();
  /// Later transfers belong to `step`, which is not before the present one.
  void begin_step(int step);
  /// There are so many steps, with `only` also where the rank does nothing in the last ones.
  void end_at(int steps);

  /// Where there is an observer: the present step stands for so many more like it, which are left out and not counted.
  void repeat(int times) { times_ += times; }
  bool is_observed() const { return observer_ != nullptr; }

  /// The general form. Scratch grows as needed for the blocks that are named. `inputs`: see Transfer; of no account for
  /// what the receiver holds itself.
  void copy(Rank from, Ref src, Rank to, Ref dst);
  void reduce(Rank from, Ref src, Rank to, Ref dst, int order, int inputs = 1);

  /// Shorthand for algorithms that treat the call as one vector in place (all-reduce, reduce, broadcast). A rank's
  /// chunk is in its input until something is written to its output (or to its first scratch group if it has no
  /// output). `reduce` adds the receiver's own value as a local transfer; operands are ordered by rank, so that both
  /// sides of an exchange compute the same bits.
  void reduce(Rank from, Rank to, int chunk, int inputs = 1);
  void copy(Rank from, Rank to, int chunk);

  /// The place of `rank`'s current value of `chunk`.
  Ref held(Rank rank, int chunk) const;

 private:
  friend class ScheduleEditor;  // tests: the mutant generator
  void add(const Transfer& transfer);
  bool wanted(Rank rank) const { return only_ == Shape::everybody || rank == only_; }
  Ref landing(Rank rank, int chunk) const;

  Collective collective_;
  int ranks_;
  Rank root_;
  int parts_;
  Rank only_;
  StepObserver* observer_;
  int times_ = 1;  // how many steps the present one stands for
  int steps_ = 0;
  int step_ = 0;
  int scratch_groups_ = 0;
  bool chained_ = false;
  std::vector<Transfer> transfers_;
  WrittenChunks written_;   // by the shorthand, at wanted ranks
  OperandCounts operands_;  // of wanted ranks' reductions in the present step
};

/// Calls `visit` with the transfers of each step that has some, in the order of steps.
template <class Visit>
void for_each_step(const Schedule& schedule, Visit visit) {
  std::vector<Transfer> sorted;
  std::span<const Transfer> left = schedule.transfers();
  if (!std::ranges::is_sorted(left, {}, &Transfer::step)) {
    sorted.assign(left.begin(), left.end());
    std::ranges::stable_sort(sorted, {}, &Transfer::step);
    left = sorted;
  }
  while (!left.empty()) {
    const auto end = std::ranges::find_if(left, [&](const Transfer& t) { return t.step != left.front().step; });
    const auto size = static_cast<std::size_t>(end - left.begin());
    visit(left.first(size));
    left = left.subspan(size);
  }
}

}  // namespace tutti
