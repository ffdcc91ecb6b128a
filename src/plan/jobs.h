// A schedule as work: which rank makes which block from what, in which order, and which of it must wait for another
// rank.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti {

/// A source of a job: `ref` at `rank`; `item` of the message that carries it where the job's maker is another.
struct Operand {
  Rank rank = 0;
  Ref ref;
  int order = 0;
  int item = 0;
};

/// All transfers of one step into one block.
struct Job {
  int step = 0;
  Rank to = 0;
  Ref dst;
  Rank maker = 0;                     ///< the rank that makes the passes
  bool reduce = false;                ///< several sources
  bool complete = false;              ///< reduces, and the result holds all contributions
  std::vector<Operand> sources = {};  ///< in the order of evaluation
};

/// Numbers every block of every rank. In place, an input block has the number of the output block it shares memory
/// with.
class Cells {
 public:
  Cells(const Schedule& schedule, bool in_place);
  std::size_t at(Rank rank, Ref ref) const {
    return numbers_[first_[static_cast<std::size_t>(rank) * 3 + static_cast<std::size_t>(ref.buffer)] +
                    static_cast<std::size_t>(ref.block)];
  }
  std::size_t size() const { return numbers_.size(); }

 private:
  std::vector<std::size_t> first_;  // by 3 * rank + buffer
  std::vector<std::size_t> numbers_;
};

/// All jobs of a schedule at one reach.
class Jobs {
 public:
  Jobs(const Schedule& schedule, Reach reach);

  /// False where no order of some rank's passes lets all of them read what the step began with, or where a job would
  /// need memory that this reach does not offer.
  bool possible() const { return possible_; }
  const Job& job(int index) const { return jobs_[static_cast<std::size_t>(index)]; }
  /// What `rank` makes, in the order it makes it.
  const std::vector<int>& of(Rank rank) const { return of_[static_cast<std::size_t>(rank)]; }

  /// Own or mapped memory that `job` reads (call with each of its sources): not what arrives in messages or lines.
  bool touches(const Job& job, const Operand& source) const;
  /// A copy of a block onto itself: read, but not stored.
  bool idle(const Job& job, const Cells& cells) const;
  const Cells& apart() const { return apart_; }
  const Cells& in_place() const { return in_place_; }

 private:
  void collect();
  void find_complete();
  void choose_makers();
  bool reaches(const Job& job) const;
  void order();
  bool order_step(std::vector<int>& jobs);
  int distance(const Job& job) const;

  const Schedule& schedule_;
  Reach reach_;
  Cells apart_;
  Cells in_place_;
  bool possible_ = true;
  std::vector<Job> jobs_;  // in order of steps
  std::vector<std::vector<int>> of_;
  std::vector<int> writer_;  // by cell, of one rank's step; -1 in between
};

}  // namespace tutti
