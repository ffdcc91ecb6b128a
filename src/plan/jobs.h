// A schedule as jobs: which rank makes which block from which sources, in which order, and which jobs must wait for
// another rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti {

/// A source of a job: `ref` at `rank`. `item`: its index in the message that carries it, if another rank makes the job.
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
  Rank maker = 0;                         ///< the rank that makes the passes
  bool reduce = false;                    ///< has several sources
  bool complete = false;                  ///< reduces, and the result has all contributions
  std::span<const Operand> sources = {};  ///< in the order of evaluation
};

/// Numbers every block of every rank. In place, an input block has the number of the output block whose memory it
/// shares.
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

/// A block sent to another rank; the blocks of one step and peer, in this order, form one message.
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
  /// inline). Everything else is as with the jobs of all ranks, but `possible` refers to this rank.
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
  bool wanted(Rank rank) const { return only_ == everybody || rank == only_; }
  void contribute_inputs();
  void contribute(std::span<const Transfer> transfers, std::size_t first_job);
  void choose_makers();
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
  bool possible_ = true;
  int items_max_ = 0;
  std::vector<Job> jobs_;  // in the order of steps
  std::vector<Operand> operands_;
  std::vector<std::vector<int>> of_;
  std::vector<std::vector<Sent>> sent_;  // by rank
  std::vector<int> contributions_;       // by cell; for collectives that reduce
  std::vector<int> landing_;             // by cell: contributions that this step adds; no_landing between steps
  std::vector<std::size_t> landed_;      // cells of this step
  // number of items of the messages of one step, by from · ranks + to; 0 between steps
  std::vector<int> items_;
  std::vector<int> writer_;  // by cell, for one rank's step; -1 between steps
};

}  // namespace tutti
