// Something under way that can be advanced without waiting.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/system.h"
#include "exec/run.h"

namespace tutti {

class Communicator;

class Operation {
 public:
  virtual ~Operation() = default;

  /// Takes its place in its communicator's order; called once, when it is submitted.
  virtual void enqueue() {}

  /// Does what can be done now. Not to be called again after done or an error.
  virtual Result<Progress> advance() = 0;

  /// Whose doorbell to sleep on and whose failure ends it; nullptr while there is no communicator yet.
  virtual Communicator* communicator() = 0;

  /// Called now and then while everything is blocked: reads what peers published meanwhile, so that nobody waits for
  /// this rank, and finds ranks that left or call something else.
  virtual Result<void> poll_peers() { return {}; }

  /// Its communicator has failed in mid-way: nothing more will be advanced.
  virtual void abandon(const Error& /*failure*/) {}
  /// After an error: a buffer of the caller that peers may still write to, or nullptr.
  virtual const void* leased() const { return nullptr; }

  /// What it is doing and whom it waits for, for stall reports and timeouts.
  virtual std::string where() const { return {}; }

  /// Handles to sleep on, instead of a doorbell where there are any; returns when to come back at the latest (now_ns),
  /// or 0: use the doorbell.
  virtual std::int64_t poll_set(std::vector<PollItem>&) const { return 0; }
};

}  // namespace tutti
