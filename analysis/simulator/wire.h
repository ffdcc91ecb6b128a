// Carries messages in a simulation: the interface of network models.
#pragma once

#include <optional>
#include <vector>

#include "analysis/simulator/messages.h"

namespace tutti::simulator {

/// Times are in nanoseconds since the call began.
struct Delivery {
  const Message* message = nullptr;
  double sent = -1;  ///< when the sender may continue; negative if `send` has returned it
  double received = 0;
};

class Wire {
 public:
  virtual ~Wire() = default;
  /// Sends a message at a time no earlier than the last event; the message must stay in place until it is delivered.
  /// Returns when the sender may continue, if that is already known.
  virtual std::optional<double> send(const Message& message, double at) = 0;
  /// From now on `rank` can receive messages of `step`.
  virtual void enter(Rank, int /*step*/, double /*at*/) {}
  /// Advances to the next event and appends the messages that it delivers, now or at a later time that is certain.
  /// False: no message is under way.
  virtual bool advance(std::vector<Delivery>& deliveries) = 0;
};

}  // namespace tutti::simulator
