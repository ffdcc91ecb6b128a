// The addresses of a rank of another host, and the order in which connections use them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/system.h"

namespace tutti {

/// One of the addresses of a rank of another host.
struct PeerAddress {
  SocketAddress at;
  int nic = 0;                 ///< number of the interface among those of its host
  int mbps = 0;                ///< of the interface; 0: not known
  std::string interface = {};  ///< "eth0"
  int mtu = 0;                 ///< of the interface; 0: not known
  /// Proven, and about as fast from here as the fastest path to its host: fit to carry a share of the data.
  bool wide = false;
};

/// Whether a rate in Mbit/s is close enough to the best one for an equal share of the data: at least half of it, or
/// neither is known (0).
inline bool comparable(int mbps, int best_mbps) {
  return std::int64_t{2} * mbps >= best_mbps;
}

/// The addresses in their order, without their interfaces.
inline std::vector<SocketAddress> in_order(std::span<const PeerAddress> addresses) {
  std::vector<SocketAddress> all;
  for (const PeerAddress& address : addresses) all.push_back(address.at);
  return all;
}

/// All addresses for the nth data connection, in the order in which to try them. NICs with a wide address take turns to
/// be first, each with its first wide address. Without wide addresses, the order is that of `addresses`. An address
/// that does not answer any more is followed by the others.
inline std::vector<SocketAddress> addresses_in_turn(std::span<const PeerAddress> addresses, int nth) {
  std::vector<const PeerAddress*> nics;
  for (const PeerAddress& address : addresses)
    if (address.wide && std::ranges::find(nics, address.nic, &PeerAddress::nic) == nics.end()) nics.push_back(&address);
  std::vector<SocketAddress> all = in_order(addresses);
  if (nics.empty()) return all;
  const auto first = std::ranges::find(all, nics[static_cast<std::size_t>(nth) % nics.size()]->at);
  std::rotate(all.begin(), first, first + 1);
  return all;
}

}  // namespace tutti
