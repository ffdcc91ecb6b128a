// What carries messages in a simulation: a model of a network.
#pragma once

#include <optional>
#include <vector>

#include "simulator/messages.h"

namespace tutti::simulator {

/// Times are in nanoseconds since the call began.
struct Delivery {
  const Message* message = nullptr;
  double sent = -1;  ///< when the sender may go on; negative where `send` has said so
  double received = 0;
};

class Wire {
 public:
  virtual ~Wire() = default;
  /// Hands over a message, which stays where it is until it is delivered, at a time no earlier than the last event.
  /// Returns when the sender may go on, if that is known by now.
  virtual std::optional<double> send(const Message& message, double at) = 0;
  /// `rank` can take messages of `step` from now on.
  virtual void enter(Rank, int /*step*/, double /*at*/) {}
  /// Goes on to the next event, and appends what is delivered by it, now or at a later time that is certain. False:
  /// nothing is under way.
  virtual bool advance(std::vector<Delivery>& deliveries) = 0;
};

}  // namespace tutti::simulator
