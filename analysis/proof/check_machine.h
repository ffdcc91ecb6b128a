// Executes the plans of all ranks symbolically, as the executor would: channels, slots, flags, call descriptors,
// several calls in a row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/proof/check.h"
#include "analysis/proof/check_clock.h"
#include "analysis/proof/check_links.h"
#include "analysis/proof/check_memory.h"
#include "analysis/proof/check_residency.h"
#include "analysis/proof/check_terms.h"
#include "base/error.h"

namespace tutti::proof {

/// The input of one call's execution; all of it outlives the machine.
struct Program {
  const Schedule* schedule = nullptr;
  std::span<const Plan> plans;  ///< by rank
  const std::vector<bool>* in_place = nullptr;
  Terms* terms = nullptr;
  const std::vector<std::vector<Terms::Id>>* outputs = nullptr;  ///< expected, by rank and block
};

/// Plans must have passed check_operands. Checks during execution: every operand is defined and has no race, both ends
/// of a message agree, some channel can proceed, and at the end of every call the rank's outputs are right.
///
/// One interleaving is enough: no action tests whether another is done without waiting for it, so which actions
/// synchronise does not depend on speed, and an order that only this interleaving has is not in the clocks. Channels
/// share nothing within a call, so there is one clock entry per rank and channel.
class Machine {
 public:
  /// Runs all programs in turn, `how.calls` times; they are of the same ranks. `multiplied`: a rank's contribution is
  /// not in its input as it enters a sum.
  Machine(std::span<const Program> programs, const CheckCase& how, bool multiplied);

  Result<void> run();

  /// Valid after run: the number of channels per rank, and the waits between the ranks of one channel.
  int channels() const { return channels_per_rank_; }
  Waits waits(int channel) const;

 private:
  /// A program, and the buffers that its calls use.
  struct Stage {
    Stage(const Program& program_in, const CheckCase& how);
    Program program;
    Access access;
    int tiles;
    int channels;  ///< per rank, with tiles
    Memory memory;
  };
  struct Channel {
    Rank rank = 0;
    int channel = 0;
    int call = 0;
    int tile = 0;
    std::uint32_t action = 0;
    int open = 0;          // number of open messages
    bool entered = false;  // has seen all call descriptors, if the access requires them
    bool waiting = true;   // not in ready_
    bool done = false;     // all calls are finished
    bool leaving = false;  // all tiles are done, but perhaps not all offered blocks read
    Clocks::Row now = 0;
  };
  /// A block that another rank may read in this rank's buffer.
  struct Offered {
    Rank peer = 0;
    std::uint32_t message = 0;
    Cell* cell = nullptr;
  };

  Channel& channel(Rank rank, int channel) {
    return channels_[static_cast<std::size_t>(rank) * channels_per_rank_ + channel];
  }
  Stage& stage(int call) { return stages_[static_cast<std::size_t>(call) % stages_.size()]; }
  const Stage& stage(int call) const { return stages_[static_cast<std::size_t>(call) % stages_.size()]; }
  Stage& stage(const Channel& l) { return stage(l.call); }
  const Stage& stage(const Channel& l) const { return stage(l.call); }
  const Plan& plan(const Channel& l) const { return stage(l).program.plans[static_cast<std::size_t>(l.rank)]; }
  bool adds(const Channel& l) const { return reduces(stage(l).program.schedule->collective()); }
  bool may_average(const Channel& l) const { return averages(stage(l).program.schedule->collective()); }
  const Channel& channel(Rank rank, int channel) const {
    return channels_[static_cast<std::size_t>(rank) * channels_per_rank_ + channel];
  }
  void wake(Rank rank, int channel);

  // Calls, from the user's side.
  void begin_call(Rank rank, int call);
  Result<void> end_call(Rank rank, int call);
  Result<void> take_outputs(Rank rank, int call);
  Result<void> take_back(Rank rank, int call, Buffer buffer, int blocks);
  Result<void> take_back_staging(Rank rank);
  Result<void> all_entered(const Channel& l, int call);
  std::uint32_t& entered(int call, const Channel& l) {
    return entered_[(static_cast<std::size_t>(call) * ranks_ + l.rank) * channels_per_rank_ + l.channel];
  }

  // Actions: true when done, false if the channel has to wait.
  Result<void> advance(Channel& l);
  bool enter(Channel& l);
  Result<bool> step(Channel& l, const Action& a);
  Result<bool> acquire(Channel& l, const Action& a);
  Result<bool> commit(Channel& l, const Action& a);
  Result<bool> peek(Channel& l, const Action& a);
  Result<bool> release(Channel& l, const Action& a);
  Result<bool> settle(Channel& l, const Action& a);
  Result<bool> wait_descriptor(Channel& l, const Action& a);
  Result<bool> pass(Channel& l, const Action& a);
  Result<void> halvings_right(const Channel& l, const Action& a, Terms::Id result) const;

  // Blocks read from their senders' buffers.
  bool offers(const Channel& l, const Place& p, std::size_t place) const;
  Result<void> offer_blocks(Channel& l, const Action& a);
  bool offers_what_it_stores(const Channel& l, const Slots::Item& item);
  bool may_change(Channel& l, const Action& a);
  bool all_offers_read(Channel& l);
  bool take_back_offer(Channel& l, Rank peer, std::uint32_t message);
  Result<Terms::Id> read(Channel& l, const Action& a, const Place& p);
  Result<void> write(Channel& l, const Action& a, const Place& p, Terms::Id term);
  Result<Terms::Id> as_operand(Channel& l, const Action& a, const Place& p, Terms::Id term);
  bool left_alone(const Channel& l, const Place& source, const Place& destination);
  Cell& cell(const Channel& l, const Place& p);
  Result<Slots::Item*> item(Channel& l, const Action& a, const Place& p, bool written);
  void publish(Channel& l) { ++clocks_.at(l.now)[static_cast<std::size_t>(l.rank)]; }

  // The end of all calls.
  Result<void> all_done();
  Result<void> nothing_left();
  Error stuck(const Channel& l) const;
  bool awaits_finished_rank(const Channel& l) const;
  Error wrong(const Channel& l, std::string what) const;
  Error race(const Channel& l, const Place& p, bool written, const Conflict& with) const;

  std::vector<Stage> stages_;
  int ranks_;
  int calls_;
  int channels_per_rank_ = 1;
  bool rendezvous_;         // 0 slots
  std::vector<int> hosts_;  // by rank; empty: no blocks are offered
  bool multiplied_;

  Clocks clocks_;
  std::vector<Slots> slots_;                   // by channel
  std::vector<Flags> flags_;                   // by channel
  std::vector<std::vector<Offered>> offered_;  // by rank · channels + channel: not known to be read
  std::vector<Clocks::Row> lines_;             // of call descriptors, by call · ranks + rank; none until published
  std::vector<int> opened_;     // by rank · ranks + peer: the last call whose descriptor was opened, from 1
  std::vector<int> published_;  // by call: number of descriptors published
  // by (call · ranks + rank) · channels + channel: the time at which the call began
  std::vector<std::uint32_t> entered_;
  std::vector<int> running_;  // by rank: number of channels still in the call
  std::vector<Channel> channels_;
  std::vector<std::uint32_t> ready_;
  std::vector<Terms::Id> operands_;
};

}  // namespace tutti::proof
