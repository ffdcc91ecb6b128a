// Executes the plans of all ranks symbolically, as the executor would: channels, slots, flags, call descriptors,
// several calls in a row.
#pragma once

#include <span>
#include <vector>

#include "analysis/proof/check_channel.h"
#include "analysis/proof/check_entries.h"
#include "analysis/proof/check_messages.h"
#include "analysis/proof/check_offers.h"

namespace tutti::proof {

/// The waits between the ranks of one channel: [rank · ranks + peer] is set if an action of `rank` comes after an
/// action of `peer`.
using Waits = std::vector<char>;

/// Plans must have passed check_operands. Checks during execution: every operand is defined and has no race, both ends
/// of a message agree, some channel can proceed, and at the end of every call the rank's outputs are right.
///
/// One interleaving is enough: no action tests whether another is done without waiting for it, so which actions
/// synchronise does not depend on speed, and an order that only this interleaving has is not in the clocks. Channels
/// share nothing within a call, so there is one clock entry per rank and channel.
class Machine {
 public:
  /// Runs all calls in turn, `how.calls` times; they are of the same ranks. `multiplied`: a rank's contribution is
  /// not in its input as it enters a sum.
  Machine(std::vector<Stage> stages, const CheckCase& how, bool multiplied);

  Result<void> run();

  /// Valid after run: the number of channels per rank, and the waits between the ranks of one channel.
  int channels() const { return channels_.per_rank(); }
  Waits waits(int channel) const;

 private:
  Stage& stage(int call) { return stages_[static_cast<std::size_t>(call) % stages_.size()]; }

  // Calls, from the user's side.
  void begin_call(Rank rank, int call);
  Result<void> end_call(Rank rank, int call);
  Result<void> take_outputs(Rank rank, Stage& s);
  Result<void> take_back(Rank rank, Stage& s, Buffer buffer);

  // Actions: true when done, false if the channel has to wait.
  Result<void> advance(Channel& l);
  Result<bool> step(Channel& l, const Action& a);
  Result<bool> pass(Channel& l, const Action& a);
  Result<Terms::Id> read(Channel& l, const Action& a, const Place& p);
  Result<void> write(Channel& l, const Action& a, const Place& p, Terms::Id term);

  // The end of all calls.
  Result<void> all_done();
  Result<void> nothing_left();
  bool awaits_finished_rank(const Channel& l) const;

  int ranks_;
  int calls_;
  std::vector<Stage> stages_;
  Clocks clocks_;
  Channels channels_;
  Messages messages_;
  std::vector<Flags> flags_;  // one, if a stage has flags
  Entries entries_;
  Offers offers_;
  std::vector<int> running_;  // by rank: number of channels still in the call
  std::vector<Terms::Id> operands_;
};

}  // namespace tutti::proof
