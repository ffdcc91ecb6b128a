// A Plan that is bound to one call and under way. Advancing it never waits.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/limits.h"

#include "exec/channel.h"
#include "exec/pass_loops.h"
#include "exec/passes.h"
#include "plan/plan.h"
#include "transport/call_descriptor.h"
#include "transport/flag.h"

namespace tutti {

/// Everything that a run uses of its communicator.
struct RunContext {
  std::span<Channel> channels;
  CallDescriptors* descriptors = nullptr;  ///< Access::in_line only
  std::span<Doorbell* const> doorbells;    ///< by rank; rung after a signal
  System* system = nullptr;
  bool oversubscribed = false;  ///< see Doorbell
  bool opens = false;           ///< some connections open when they are first needed
  const PassRules* rules = &default_rules;
};

enum class Progress { blocked, moved, done };

class Run {
 public:
  /// All arguments must outlive the run. Uses min(channels, tiles) channels; plans without slots use one.
  Run(const Plan& plan, const Binding& binding, const RunContext& links);

  /// Does the work that can be done without waiting, at most about a megabyte. Done only once all sent messages have
  /// left this process. Errors carry peer, channel and step.
  Result<Progress> advance();

  /// For a blocked run: adds the handles whose readiness may unblock it. Messages through shared memory ring the
  /// doorbell instead.
  void poll_set(std::vector<PollItem>& items) const;

  /// The position of the run, for stall reports: the first blocked channel, the peer that it waits for, and the step.
  struct Position {
    int peer = -1;
    int channel = 0;
    int step = 0;
    Verb verb = Verb::copy;
  };
  Position waiting_for() const;

 private:
  Result<bool> advance_channel(int index, std::size_t& budget);
  int unopened() const;
  Result<bool> act(Channel& channel, Cursor& cursor, const Action& action, std::size_t& budget);
  Result<bool> acquire(Channel& channel, const Cursor& cursor, const Action& action);
  Result<bool> peek(Channel& channel, const Cursor& cursor, const Action& action);
  Result<bool> wait_descriptor(Channel& channel, const Action& action);
  const Plan& plan() const { return passes_.bound().plan(); }
  const Binding& binding() const { return passes_.bound().binding(); }

  Passes passes_;
  RunContext links_;
  int channels_ = 1;
  int unopened_ = std::numeric_limits<int>::max();
  int first_channel_ = 0;     // the next advance begins here, so that no channel uses up the whole budget
  bool skips_empty_ = false;  // skips messages that both ends know to be empty
  bool invites_ = false;      // peers are told where their messages may be written
  std::array<Cursor, limits::channels_max> cursors_;  // only entries of used channels are initialised
};

}  // namespace tutti
