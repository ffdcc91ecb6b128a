#include "net/peer_address.h"

#include <algorithm>
#include <cstdint>

namespace tutti {

bool comparable(int mbps, int best_mbps) {
  return std::int64_t{2} * mbps >= best_mbps;
}

std::vector<SocketAddress> in_order(std::span<const PeerAddress> addresses) {
  std::vector<SocketAddress> all;
  for (const PeerAddress& address : addresses) all.push_back(address.at);
  return all;
}

std::vector<SocketAddress> addresses_in_turn(std::span<const PeerAddress> addresses, int nth) {
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
