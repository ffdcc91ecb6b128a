// Where a rank of another host listens, and which of its addresses a connection goes to.
#pragma once

#include <span>
#include <vector>

#include "base/system.h"

namespace tutti {

/// One of the addresses of a rank of another host.
struct PeerAddress {
  SocketAddress at;
  int nic = 0;   ///< number of the interface among those of its host
  int mbps = 0;  ///< of the interface; 0: not known
  /// Proven, and about as fast from here as the fastest way to its host: fit to carry a share of the data.
  bool wide = false;
};

/// Whether a rate in Mbit/s is close enough to the best one to carry an equal share beside it: half of it at least, or
/// neither is known (0).
bool comparable(int mbps, int best_mbps);

/// The addresses for the nth connection for data, in the order in which to try them: NICs with a wide address take
/// turns to be the first, with the first of their wide addresses; where there are none such the order is that of
/// `addresses`. All are in it: what does not answer any more makes room for the others.
std::vector<SocketAddress> addresses_in_turn(std::span<const PeerAddress> addresses, int nth);

/// The addresses alone, in their order.
std::vector<SocketAddress> in_order(std::span<const PeerAddress> addresses);

}  // namespace tutti
