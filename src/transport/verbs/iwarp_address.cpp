#include "transport/verbs/iwarp_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netpacket/packet.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "base/descriptors.h"

namespace tutti::verbs {
namespace {

constexpr std::size_t mac_bytes = 6;

struct Free {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

bool has_mac(const ifaddrs& one, std::span<const std::uint8_t> mac) {
  if (one.ifa_addr == nullptr || one.ifa_addr->sa_family != AF_PACKET) return false;
  sockaddr_ll link{};
  std::memcpy(&link, one.ifa_addr, sizeof link);
  return link.sll_halen == mac_bytes && std::equal(mac.begin(), mac.end(), link.sll_addr);
}

std::optional<Gid> address_of(const ifaddrs& one) {
  if (one.ifa_addr == nullptr) return std::nullopt;
  Gid address{};
  if (one.ifa_addr->sa_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, one.ifa_addr, sizeof four);
    address[10] = address[11] = 0xff;
    std::memcpy(&address[12], &four.sin_addr, sizeof four.sin_addr);
    return address;
  }
  if (one.ifa_addr->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 six{};
  std::memcpy(&six, one.ifa_addr, sizeof six);
  std::memcpy(address.data(), &six.sin6_addr, address.size());
  // A link-local address says nothing without an interface, whose number the peer does not know.
  return is_link_local(address) ? std::nullopt : std::optional(address);
}

}  // namespace

bool maps_ipv4(const Gid& address) {
  return std::all_of(address.begin(), address.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) &&
         address[10] == 0xff && address[11] == 0xff;
}

bool is_link_local(const Gid& address) {
  return address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

std::optional<Gid> iwarp_address(const Gid& gid) {
  if (maps_ipv4(gid)) return gid;
  ifaddrs* list = nullptr;
  const HeldStdio held;
  if (::getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, Free> all(list);
  std::optional<Gid> found;
  for (const ifaddrs* port = list; port != nullptr; port = port->ifa_next) {
    if (!has_mac(*port, std::span(gid).first(mac_bytes))) continue;
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
      if (std::string_view(one->ifa_name) != port->ifa_name) continue;
      const auto address = address_of(*one);
      if (address && (!found || (maps_ipv4(*address) && !maps_ipv4(*found)))) found = address;
    }
  }
  return found;
}

sockaddr_storage socket_address(const Gid& address, std::uint16_t port) {
  sockaddr_storage storage{};
  if (maps_ipv4(address)) {
    sockaddr_in four{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
    std::memcpy(&four.sin_addr, &address[12], sizeof four.sin_addr);
    std::memcpy(&storage, &four, sizeof four);
    return storage;
  }
  sockaddr_in6 six{
      .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_flowinfo = 0, .sin6_addr = {}, .sin6_scope_id = 0};
  std::memcpy(&six.sin6_addr, address.data(), address.size());
  std::memcpy(&storage, &six, sizeof six);
  return storage;
}

}  // namespace tutti::verbs
