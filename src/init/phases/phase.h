// A step that all ranks of a start take together: one exchange, or a wait between two of them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "call/operation.h"
#include "init/phases/facts.h"

namespace tutti::start {

class Phase {
 public:
  virtual ~Phase() = default;

  /// Whether there is such a phase in this start. Of exchanges, equal on all ranks.
  virtual bool applies(const Facts&) const { return true; }
  /// Errors end the start on this rank at once; what the others are to hear in the last exchange is noted instead.
  virtual Result<void> begin(Facts& facts) = 0;
  /// `done`: the phase is over. Errors: as of `begin`.
  virtual Result<Progress> advance(Facts& facts) = 0;
  /// Adds the handles to wait for before the next advance; returns the latest time for it.
  virtual std::int64_t poll_set(const Facts& facts, std::vector<PollItem>& items) const = 0;
};

/// All ranks exchange a blob each, once or several times.
class ExchangePhase : public Phase {
 public:
  Result<void> begin(Facts& facts) final;
  Result<Progress> advance(Facts& facts) final;
  std::int64_t poll_set(const Facts& facts, std::vector<PollItem>& items) const final;

 private:
  /// What this rank contributes to the next exchange.
  virtual Result<Blob> contribution(Facts& facts) = 0;
  /// What all ranks have contributed. True: another exchange is needed, on all ranks.
  virtual Result<bool> take(Facts& facts, const std::vector<Blob>& gathered) = 0;
};

/// A rank works by itself, or waits for others in another way than an exchange, until the limit of the start.
class WaitPhase : public Phase {
 public:
  Result<Progress> advance(Facts& facts) final;
  std::int64_t poll_set(const Facts& facts, std::vector<PollItem>& items) const final;

 private:
  virtual Result<Progress> wait(Facts& facts) = 0;
  /// As poll_set, but for the limit of the start.
  virtual std::int64_t wait_set(const Facts& facts, std::vector<PollItem>& items) const = 0;
  /// "while addresses were tried"
  virtual const char* while_waiting() const = 0;
  /// What keeps this rank waiting, where it knows.
  virtual std::optional<Error> stuck(const Facts&) const { return std::nullopt; }
};

/// Others may be waiting for this rank elsewhere than in an exchange: they are told as well. Returns `error`.
Error end_at_once(const Facts& facts, Error error);
/// Why this process cannot accept connections. Ranks that wait for one do not know the reason.
std::optional<Error> cannot_accept(const Facts& facts);

}  // namespace tutti::start
