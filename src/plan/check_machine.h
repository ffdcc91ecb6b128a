// Executes the plans of all ranks symbolically, as the executor would: lanes, slots, flags, lines, calls in a row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/check.h"
#include "plan/check_clock.h"
#include "plan/check_links.h"
#include "plan/check_memory.h"
#include "plan/check_residency.h"
#include "plan/check_terms.h"

namespace tutti::proof {

/// What is run in a call; all of it outlives the machine.
struct Program {
  const Schedule* schedule = nullptr;
  std::span<const Plan> plans;  ///< by rank
  const std::vector<bool>* in_place = nullptr;
  Terms* terms = nullptr;
  const std::vector<std::vector<Terms::Id>>* outputs = nullptr;  ///< wanted, by rank and block
};

/// Plans must have passed check_operands. What is checked on the way: every operand defined and without a race, both
/// ends of a message alike, progress, and at the end of every call the rank's outputs.
///
/// One interleaving is enough: no action asks whether another is done without waiting for it, so what meets what does
/// not depend on speed; and an order that only this interleaving has is not in the clocks. Lanes share nothing within a
/// call, so clocks count ranks per lane.
class Machine {
 public:
  /// All programs in turn, `how.calls` times over; they are of the same ranks.
  Machine(std::span<const Program> programs, const CheckCase& how);

  Result<void> run();

  /// After run: lanes of a rank, and who waited for whom in one of them.
  int lanes() const { return lanes_per_rank_; }
  Waits waits(int lane) const;

 private:
  /// A program, and the buffers that its calls are given.
  struct Stage {
    Stage(const Program& program_in, const CheckCase& how);
    Program program;
    Reach reach;
    int tiles;
    int lanes;  ///< of a rank, that have tiles
    Memory memory;
  };
  struct Lane {
    Rank rank = 0;
    int lane = 0;
    int call = 0;
    int tile = 0;
    std::uint32_t action = 0;
    int open = 0;          // messages
    bool entered = false;  // seen all lines, where the reach wants that
    bool waiting = true;   // not in ready_
    bool done = false;     // with all calls
    Clocks::Row now = 0;
  };

  Lane& lane(Rank rank, int lane) { return lanes_[static_cast<std::size_t>(rank) * lanes_per_rank_ + lane]; }
  Stage& stage(int call) { return stages_[static_cast<std::size_t>(call) % stages_.size()]; }
  const Stage& stage(int call) const { return stages_[static_cast<std::size_t>(call) % stages_.size()]; }
  Stage& stage(const Lane& l) { return stage(l.call); }
  const Stage& stage(const Lane& l) const { return stage(l.call); }
  const Plan& plan(const Lane& l) const { return stage(l).program.plans[static_cast<std::size_t>(l.rank)]; }
  bool adds(const Lane& l) const { return reduces(stage(l).program.schedule->collective()); }
  const Lane& lane(Rank rank, int lane) const {
    return lanes_[static_cast<std::size_t>(rank) * lanes_per_rank_ + lane];
  }
  void wake(Rank rank, int lane);

  // Calls: the user's side of them.
  void begin_call(Rank rank, int call);
  Result<void> end_call(Rank rank, int call);
  Result<void> take_outputs(Rank rank, int call);
  Result<void> take_back(Rank rank, int call, Buffer buffer, int blocks);
  Result<void> take_back_staging(Rank rank);
  Result<void> all_entered(const Lane& l, int call);
  std::uint32_t& entered(int call, const Lane& l) {
    return entered_[(static_cast<std::size_t>(call) * ranks_ + l.rank) * lanes_per_rank_ + l.lane];
  }

  // Actions: true when done, false when it has to wait.
  Result<void> advance(Lane& l);
  bool enter(Lane& l);
  Result<bool> step(Lane& l, const Action& a);
  Result<bool> acquire(Lane& l, const Action& a);
  Result<bool> commit(Lane& l, const Action& a);
  Result<bool> peek(Lane& l, const Action& a);
  Result<bool> release(Lane& l, const Action& a);
  Result<bool> settle(Lane& l, const Action& a);
  Result<bool> wait_line(Lane& l, const Action& a);
  Result<bool> pass(Lane& l, const Action& a);
  Result<Terms::Id> read(Lane& l, const Action& a, const Place& p);
  Result<void> write(Lane& l, const Action& a, const Place& p, Terms::Id term);
  Result<Terms::Id> as_operand(Lane& l, const Action& a, const Place& p, Terms::Id term);
  bool left_alone(const Lane& l, const Place& source, const Place& destination);
  Cell& cell(const Lane& l, const Place& p);
  Result<Slots::Item*> item(Lane& l, const Action& a, const Place& p, bool written);
  void publish(Lane& l) { ++clocks_.at(l.now)[static_cast<std::size_t>(l.rank)]; }

  // Ends.
  Result<void> all_done();
  Result<void> nothing_left();
  Error stuck(const Lane& l) const;
  bool awaits_finished_rank(const Lane& l) const;
  Error wrong(const Lane& l, std::string what) const;
  Error race(const Lane& l, const Place& p, bool written, const Conflict& with) const;

  std::vector<Stage> stages_;
  int ranks_;
  int calls_;
  int lanes_per_rank_ = 1;
  bool rendezvous_;  // 0 slots

  Clocks clocks_;
  std::vector<Slots> slots_;            // by lane
  std::vector<Flags> flags_;            // by lane
  std::vector<Clocks::Row> lines_;      // by call · ranks + rank; none until published
  std::vector<int> opened_;             // by rank · ranks + peer: the last call whose line was opened, from 1
  std::vector<int> published_;          // by call: lines there are
  std::vector<std::uint32_t> entered_;  // by (call · ranks + rank) · lanes + lane: the time at which the call began
  std::vector<int> running_;            // by rank: lanes still in the call
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> ready_;
  std::vector<Terms::Id> operands_;
};

}  // namespace tutti::proof
