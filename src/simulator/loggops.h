// LogGOPS: a network that is never full, between processors that work for every message.
#pragma once

#include <limits>
#include <memory>

#include "simulator/wire.h"

namespace tutti::simulator {

/// For a message of b bytes the sender's processor works o + (b-1)·O and its interface is taken for g + (b-1)·G. After
/// o + L the message is at the receiver, whose processor works for it as soon as it and the interface are free, for
/// o + (b-1)·max(O, G). Larger messages than S leave when the receiver has entered the step and has said so, which
/// takes o + L, and the sender goes on when they are received. All in nanoseconds and bytes. Hoefler, Schneider and
/// Lumsdaine, "LogGOPSim: simulating large-scale applications in the LogGOPS model", LSAP 2010.
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
