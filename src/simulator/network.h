// Messages over the links of a topology, which they share.
#pragma once

#include <memory>
#include <vector>

#include "simulator/topology.h"
#include "simulator/wire.h"

namespace tutti::simulator {

enum class Sharing {
  /// Messages are flows: at any time each has its max-min fair share of the links on its way. Exact, and slow where
  /// many flows begin and end at different times.
  fair,
  /// A link carries one message at a time, at its full rate, in the order in which they come to it. A message goes on
  /// over the next link as soon as its head is there (cut-through), and waits there as long as it must.
  fifo,
};

/// The sender may go on when the last byte has left; it arrives by the latencies of all links later.
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

}  // namespace tutti::simulator
