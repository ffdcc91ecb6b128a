// Simulates the messages of a collective on a model of a network.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/simulator/messages.h"
#include "analysis/simulator/wire.h"

namespace tutti::simulator {

struct StepOutcome {
  double begin_ns = 0;  ///< when the first endpoint entered it
  double end_ns = 0;    ///< when the last endpoint finished it
  std::uint64_t messages = 0;
  double bytes = 0;
};

struct Outcome {
  double time_ns = 0;               ///< when the last endpoint is done
  std::vector<double> finished_ns;  ///< by endpoint
  std::vector<StepOutcome> steps;
  std::uint64_t messages = 0;
  double bytes = 0;
};

/// `reduce_ns_per_byte`: per byte of `Message::reduced`, after the last message of a step has arrived; endpoints from
/// `switches` on sum in no time. Messages are requested when the first endpoint needs them and dropped when the last
/// one is done.
Outcome simulate(MessageSource& source, Wire& wire, double reduce_ns_per_byte, Rank switches);

}  // namespace tutti::simulator
