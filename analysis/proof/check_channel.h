// One channel of a rank in one call, and which channels of all ranks can continue.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/proof/check.h"
#include "analysis/proof/check_clock.h"
#include "analysis/proof/check_memory.h"
#include "analysis/proof/check_terms.h"
#include "base/error.h"

namespace tutti::proof {

/// One call: what is executed, and the buffers that it uses.
struct Stage {
  Stage(const CheckedCall& checked, const CheckCase& how);
  Collective collective() const { return call->schedule->collective(); }
  bool adds() const { return reduces(collective()); }
  bool may_average() const { return averages(collective()); }

  const CheckedCall* call;  ///< outlives the machine
  Terms terms;
  std::vector<std::vector<Terms::Id>> outputs = {};  ///< expected, by rank and block
  Access access;
  int items_max;
  int tiles;
  int channels;  ///< per rank, with tiles
  Memory memory;
};

struct Channel {
  Rank rank = 0;
  int channel = 0;
  Clocks::Row now = 0;
  Stage* stage = nullptr;  ///< of the call
  int call = 0;
  int tile = 0;
  std::uint32_t action = 0;
  int open = 0;          ///< number of open messages
  bool entered = false;  ///< has seen all call descriptors, if the access requires them
  bool waiting = true;   ///< not among those that can continue
  bool done = false;     ///< all calls are finished
  bool leaving = false;  ///< all tiles are done, but perhaps not all offered blocks read

  const Plan& plan() const { return stage->call->plans[static_cast<std::size_t>(rank)]; }
  /// The cell of a block in a buffer; slots and call descriptors have their own.
  Cell& cell(const Place& p) const;
  /// In place, a copy may be of a block onto itself: nothing is stored then, unless reading scales the block.
  bool left_alone(const Place& source, const Place& destination) const;
  Error wrong(std::string what) const;
  Error race(const Place& p, bool written, const Conflict& with) const;
};

class Channels {
 public:
  /// Each takes a row of `clocks`, at the time 1 of its rank.
  Channels(int ranks, int per_rank, Clocks& clocks);

  Channel& at(Rank rank, int channel) { return all_[index(rank, channel)]; }
  const Channel& at(Rank rank, int channel) const { return all_[index(rank, channel)]; }
  std::vector<Channel>& all() { return all_; }
  int per_rank() const { return per_rank_; }

  /// What the channel waits for may have happened, unless it is done.
  void wake(Rank rank, int channel);
  /// The channel that was woken last; null: all wait.
  Channel* next();

 private:
  std::size_t index(Rank rank, int channel) const { return static_cast<std::size_t>(rank) * per_rank_ + channel; }

  int per_rank_;
  std::vector<Channel> all_;
  std::vector<std::uint32_t> ready_;
};

}  // namespace tutti::proof
