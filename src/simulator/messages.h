// What a simulation plays: the messages of a collective, step by step.
#pragma once

#include <vector>

#include "plan/types.h"

namespace tutti::simulator {

/// What one endpoint sends another in one step. Endpoints are ranks and, behind them, switches that add up.
struct Message {
  Rank from = 0;
  Rank to = 0;
  int step = 0;
  double bytes = 0;
  double reduced = 0;  ///< bytes that the receiver adds to what it has when all messages of the step have come
};

/// A rank enters a step when it is done with the one before: when the messages to it have come and are added up. Then
/// it hands over all messages of the step at once. So steps are those of each rank, not of all together.
class MessageSource {
 public:
  virtual ~MessageSource() = default;
  virtual int endpoints() const = 0;
  virtual int steps() const = 0;
  /// Called once for each step, in order. Overwrites `messages` with those of `step`, from != to; a sender's are in the
  /// order in which it hands them over.
  virtual void messages_of(int step, std::vector<Message>& messages) = 0;
};

}  // namespace tutti::simulator
