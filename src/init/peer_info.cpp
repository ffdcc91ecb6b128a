#include "init/peer_info.h"

#include <algorithm>

namespace tutti {
Result<std::vector<PeerAddress>> read_peer_addresses(const Blob& blob) {
  auto located = TUTTI_TRY(read_message<PeerAddresses>(blob, "a list of addresses"));
  std::vector<PeerAddress> addresses;
  for (const auto& address : located.addresses)
    if (address.host[0] != '\0')
      addresses.push_back({.at = {.host = get_text(address.host), .port = address.port},
                           .nic = address.nic,
                           .mbps = std::max(0, address.mbps),
                           .interface = get_text(address.interface),
                           .mtu = std::max(0, address.mtu)});
  return addresses;
}

Result<InitResult> read_init_result(const Blob& blob) {
  if (blob.size() < sizeof(FirstInitResult)) return read_message<InitResult>(blob, "a result of a start");
  return TUTTI_TRY(read_first_init_result(blob)).result;
}

Result<FirstInitResult> read_first_init_result(const Blob& blob) {
  const auto first = std::span(blob).first(std::min(blob.size(), sizeof(FirstInitResult)));  // the map is behind it
  return read_message<FirstInitResult>(first, "rank 0's result of a start");
}

std::span<const std::byte> behind_first_init_result(const Blob& blob) {
  return std::span(blob).subspan(std::min(blob.size(), sizeof(FirstInitResult)));
}

}  // namespace tutti
