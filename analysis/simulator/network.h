// Messages over the links of a topology, which they share.
#pragma once

#include <memory>
#include <vector>

#include "analysis/simulator/topology.h"
#include "analysis/simulator/wire.h"

namespace tutti::simulator {

enum class Sharing {
  /// Messages are flows: at any time each has its max-min fair share of the links on its path. Exact, but slow if many
  /// flows begin and end at different times.
  fair,
  /// A link carries one message at a time, at its full rate, in order of arrival. A message continues over the next
  /// link as soon as its head has arrived there (cut-through), and waits there as long as necessary.
  fifo,
};

/// The sender continues when the last byte has left; the byte arrives after the latencies of all links.
class NetworkWire : public Wire {
 public:
  const std::vector<double>& carried() const { return carried_; }  ///< bytes, by link

 protected:
  explicit NetworkWire(const Topology& topology) : topology_(topology), carried_(topology.links().size()) {}
  const Topology& topology_;
  std::vector<double> carried_;
};

/// `topology` must outlive the result.
std::unique_ptr<NetworkWire> make_wire(const Topology& topology, Sharing sharing);
std::unique_ptr<NetworkWire> make_fifo_wire(const Topology& topology);

}  // namespace tutti::simulator
