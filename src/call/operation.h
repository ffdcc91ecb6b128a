// An operation under way, which is advanced without waiting.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/system.h"
#include "call/waiting.h"
#include "exec/run.h"

namespace tutti {

class Communicator;

class Operation {
 public:
  virtual ~Operation() = default;

  /// Takes a place in the communicator's order of calls. Called once, when the operation is submitted.
  virtual void enqueue() {}

  /// Does the work that can be done now. Must not be called again after done or an error.
  virtual Result<Progress> advance() = 0;

  /// The communicator whose failure ends the operation, and on whose doorbell to sleep; nullptr while there is none
  /// yet.
  virtual Communicator* communicator() = 0;

  /// What the caller's thread is to run while it waits; where there is a communicator, that one says it.
  virtual WhileWaiting while_waiting() const { return {}; }

  /// The limit of the call, where it was made; empty: as its communicator says.
  virtual std::optional<CallLimit> limit() const { return std::nullopt; }

  /// Called from time to time while all operations are blocked. Reads what peers have published meanwhile, so that no
  /// peer waits for this rank, and finds ranks that have left or make a different call.
  virtual Result<void> poll_peers() { return {}; }

  /// The communicator has failed: the operation will not be advanced any more.
  virtual void abandon(const Error& /*failure*/) {}
  /// After an error: a buffer of the caller to which peers may still write, or nullptr.
  virtual const void* leased() const { return nullptr; }

  /// Describes what the operation is doing and for which rank it waits. For stall reports and timeouts.
  virtual std::string where() const { return {}; }

  /// That rank; −1: none, or it cannot tell which; any_rank: whichever comes first.
  virtual Rank waits_for() const { return -1; }

  /// Adds handles to sleep on; if there are any, they replace the doorbell. Returns the latest time (now_ns) for the
  /// next advance; 0: use the doorbell.
  virtual std::int64_t poll_set(std::vector<PollItem>&) const { return 0; }
};

}  // namespace tutti
