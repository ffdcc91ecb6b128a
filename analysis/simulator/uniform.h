// The network of closed-form models: all pairs of ranks have the same distance.
#pragma once

#include <memory>

#include "analysis/simulator/wire.h"

namespace tutti::simulator {

/// A message of b bytes takes alpha + b·beta. An endpoint sends up to `ports` messages at a time and receives as many,
/// each at the full rate; further messages wait, and their latencies overlap. The sender continues when the message has
/// arrived. So a step in which each rank sends m messages of b bytes takes alpha + ceil(m / ports)·b·beta. Hockney,
/// "The communication challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing 1994.
struct Uniform {
  double alpha_ns = 1000;
  double beta_ns_per_byte = 0.01;
  int ports = 1;
};

std::unique_ptr<Wire> make_wire(const Uniform& network, int endpoints);

}  // namespace tutti::simulator
