// A schedule as work: which rank makes which block from what, in which order, and which of it must wait for another
// rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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
  Rank maker = 0;                         ///< the rank that makes the passes
  bool reduce = false;                    ///< several sources
  bool complete = false;                  ///< reduces, and the result holds all contributions
  std::span<const Operand> sources = {};  ///< in the order of evaluation
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

/// A block sent to another rank; those of one step and peer, in this order, are one message.
struct Sent {
  int step = 0;
  Rank to = 0;
  Ref ref;
};

/// All jobs of a schedule at one access.
class Jobs {
 public:
  static constexpr Rank everybody = -1;

  /// `only`: what that rank makes and sends alone, for an access where a rank makes its own blocks (fifo and line). All
  /// else is as if the jobs of all ranks were there, but `possible` speaks of that rank.
  Jobs(const Schedule& schedule, Access access, Rank only = everybody);
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  /// False where no order of some rank's passes lets all of them read what the step began with, or where a job would
  /// need memory that this access does not offer.
  bool possible() const { return possible_; }
  const Job& job(int index) const { return jobs_[static_cast<std::size_t>(index)]; }
  /// What `rank` makes, in the order it makes it.
  const std::vector<int>& of(Rank rank) const { return of_[static_cast<std::size_t>(rank)]; }

  /// What `rank` sends, by steps.
  const std::vector<Sent>& sent_by(Rank rank) const { return sent_[static_cast<std::size_t>(rank)]; }
  /// Blocks of the largest message of any rank.
  int items_max() const { return items_max_; }

  /// Own or mapped memory that `job` reads (call with each of its sources): not what arrives in messages or lines.
  bool touches(const Job& job, const Operand& source) const;
  /// A copy of a block onto itself: read, but not stored.
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
  std::vector<Job> jobs_;  // in order of steps
  std::vector<Operand> operands_;
  std::vector<std::vector<int>> of_;
  std::vector<std::vector<Sent>> sent_;  // by rank
  std::vector<int> contributions_;       // by cell; of what reduces
  std::vector<int> landing_;             // by cell: contributions that this step brings, no_landing in between
  std::vector<std::size_t> landed_;      // cells of this step
  std::vector<int> items_;               // of messages of one step, by from · ranks + to; 0 in between
  std::vector<int> writer_;              // by cell, of one rank's step; -1 in between
};

}  // namespace tutti
