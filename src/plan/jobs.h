// A schedule as jobs: which rank makes which block from which sources, in which order, and which jobs must wait for
// another rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/limits.h"
#include "plan/cells.h"
#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti {

/// A source of a job: `ref` at `rank`. `item`: its index in the message that carries it, if another rank makes the job.
struct Operand {
  Rank rank = 0;
  Ref ref;
  int order = 0;
  int item = 0;
  int inputs = 0;  ///< of how many ranks' inputs it is the sum; where averages()
};

/// All transfers of one step into one block.
struct Job {
  int step = 0;
  Rank to = 0;
  Ref dst;
  Rank maker = 0;                         ///< the rank that makes the passes
  bool reduce = false;                    ///< has several sources
  int turn = 0;                           ///< that of the messages that carry its sources
  int inputs = 0;                         ///< of how many ranks' inputs the result is the sum; where averages()
  std::span<const Operand> sources = {};  ///< in the order of evaluation
};

/// A message holds at most limits::items_max blocks. The blocks of one step and peer form as many messages as needed;
/// the k-th one to or from each peer has turn k. In a step a rank sends the messages of one turn, then makes the jobs
/// that read from the messages of that turn.
constexpr int turn_of(int item) {
  return item / limits::items_max;
}

/// A block sent to another rank, in the order of the messages.
struct Sent {
  int step = 0;
  Rank to = 0;
  Ref ref;
};

/// All jobs of a schedule with one access.
class Jobs {
 public:
  static constexpr Rank everybody = -1;

  /// `only`: collects only what this rank makes and sends, for accesses where a rank makes its own blocks (slots and
  /// inline). Everything else is as with the jobs of all ranks, but `possible` refers to this rank. Where the schedule
  /// itself has only one rank's transfers, that rank it must be, and `items_max` refers to it too.
  Jobs(const Schedule& schedule, Access access, Rank only = everybody);
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  /// False if for some rank no order of its passes lets all of them read the values at the beginning of the step, or if
  /// a job would need memory that this access does not offer.
  bool possible() const { return possible_; }
  const Job& job(int index) const { return jobs_[static_cast<std::size_t>(index)]; }
  /// The jobs that `rank` makes, in order.
  const std::vector<int>& of(Rank rank) const { return of_[static_cast<std::size_t>(rank)]; }

  /// The blocks that `rank` sends, by step.
  const std::vector<Sent>& sent_by(Rank rank) const { return sent_[static_cast<std::size_t>(rank)]; }
  /// Number of blocks in the largest message of any rank.
  int items_max() const { return items_max_; }

  /// Whether `job` reads this source from its own or mapped memory, not from a message or call descriptor. Call it with
  /// each of the job's sources.
  bool touches(const Job& job, const Operand& source) const;
  /// A copy of a block onto itself: the block is read, but not stored.
  bool idle(const Job& job, const Cells& cells) const;
  const Cells& apart() const { return apart_; }
  const Cells& in_place() const { return in_place_; }

 private:
  void collect();
  void collect_step(std::span<const Transfer> transfers, std::vector<std::uint32_t>& job_of);
  int next_item(const Transfer& t);
  int& items_between(Rank from, Rank to);
  bool wanted(Rank rank) const { return only_ == everybody || rank == only_; }
  void take_turns(std::size_t first_job, std::span<const Transfer> transfers);
  void choose_makers(std::span<Job> step);
  bool accesses(const Job& job) const;
  void order();
  bool order_step(std::vector<int>& jobs);
  struct Edge {
    int earlier = 0;
    int later = 0;
  };
  std::vector<Edge> constraints(std::span<const int> jobs);
  int distance(const Job& job) const;

  const Schedule& schedule_;
  Access access_;
  Rank only_;
  Cells apart_;
  Cells in_place_;
  Contributions contributions_;
  bool possible_ = true;
  int items_max_ = 0;
  std::vector<Job> jobs_;  // in the order of steps
  std::vector<Operand> operands_;
  std::vector<std::vector<int>> of_;
  std::vector<std::vector<Sent>> sent_;  // by rank
  std::vector<Operand*> next_;           // of this step's jobs: the next source to be written
  std::vector<int> items_;               // between two ranks in one step, see items_between(); 0 between steps
  std::vector<int> writer_;              // by cell, for one rank's step; -1 between steps
};

}  // namespace tutti
