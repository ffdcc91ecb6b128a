// The input of a simulation: the messages of a collective, step by step.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/types.h"

namespace tutti::simulator {

/// Of arrays by rank, endpoint, step or level.
inline std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

/// A message from one endpoint to another in one step. Endpoints are the ranks, followed by the switches that sum.
struct Message {
  Rank from = 0;
  Rank to = 0;
  int step = 0;
  double bytes = 0;
  double reduced = 0;  ///< bytes that the receiver adds to its data when all messages of the step have arrived
};

/// A rank enters a step when it has finished the one before, that is, when that step's messages to it have arrived and
/// are summed. It then sends all its messages of the step at once. So each rank has its own steps; they are not global.
class MessageSource {
 public:
  virtual ~MessageSource() = default;
  virtual int endpoints() const = 0;
  virtual int steps() const = 0;
  /// Called once per step, in order. Overwrites `messages` with those of `step`, from != to; a sender's messages are in
  /// the order in which it sends them.
  virtual void messages_of(int step, std::vector<Message>& messages) = 0;
};

}  // namespace tutti::simulator
