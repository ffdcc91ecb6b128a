#include "init/peer_info.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace tutti {
namespace {

template <class T>
Result<T> read(const Blob& blob, const char* what) {
  if (blob.size() != sizeof(T))
    return Error{.code = Code::remote,
                 .what = fmt::format("{} of {} bytes where {} were expected", what, blob.size(), sizeof(T))};
  T value;
  std::memcpy(&value, blob.data(), sizeof value);
  return value;
}

/// Rank 0's result has the map of the job behind it.
Blob without_map(const Blob& blob) {
  const std::size_t bytes = std::min(blob.size(), sizeof(FirstInitResult));
  return {blob.begin(), blob.begin() + static_cast<std::ptrdiff_t>(bytes)};
}

}  // namespace

Result<PeerInfo> read_peer_info(const Blob& blob) {
  return read<PeerInfo>(blob, "a greeting");
}

Result<SharingWord> read_sharing(const Blob& blob) {
  return read<SharingWord>(blob, "a report on sharing memory");
}

Result<std::vector<PeerAddress>> read_peer_addresses(const Blob& blob) {
  auto located = TUTTI_TRY(read<PeerAddresses>(blob, "a list of addresses"));
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
  if (blob.size() < sizeof(FirstInitResult)) return read<InitResult>(blob, "a result of a start");
  auto first = TUTTI_TRY(read_first_init_result(blob));
  return first.result;
}

Result<FirstInitResult> read_first_init_result(const Blob& blob) {
  return read<FirstInitResult>(without_map(blob), "rank 0's result of a start");
}

std::span<const std::byte> behind_first_init_result(const Blob& blob) {
  return std::span(blob).subspan(std::min(blob.size(), sizeof(FirstInitResult)));
}

}  // namespace tutti
