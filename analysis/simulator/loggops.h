// LogGOPS: an uncongested network between processors that spend time on every message.
#pragma once

#include <limits>
#include <memory>

#include "analysis/simulator/wire.h"

namespace tutti::simulator {

/// For a message of b bytes the sender's processor works for o + (b-1)·O, and its interface is busy for g + (b-1)·G.
/// The message reaches the receiver after o + L. As soon as the receiver's processor and interface are free, the
/// processor works for o + (b-1)·max(O, G). A message larger than S leaves only when the receiver has entered the step
/// and has said so, which takes o + L; its sender continues when it has been received. All in nanoseconds and bytes.
/// Hoefler, Schneider and Lumsdaine, "LogGOPSim: simulating large-scale applications in the LogGOPS model", LSAP 2010.
struct LogGops {
  double L = 2500;
  double o = 1500;
  double g = 1000;
  double G = 6;
  double O = 0;
  double S = std::numeric_limits<double>::infinity();
};

std::unique_ptr<Wire> make_wire(const LogGops& network, int endpoints);

}  // namespace tutti::simulator
