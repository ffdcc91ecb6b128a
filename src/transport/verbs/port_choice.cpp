#include "transport/verbs/port_choice.h"

#include <arpa/inet.h>

#include <algorithm>
#include <vector>

namespace tutti::verbs {
namespace {

bool is_at(const Port& port, const std::string& address) {
  Gid gid{};
  in_addr four{};
  if (::inet_pton(AF_INET6, address.c_str(), gid.data()) == 1) return gid == port.gid;
  if (::inet_pton(AF_INET, address.c_str(), &four) != 1) return false;
  gid[10] = gid[11] = 0xff;
  std::copy_n(reinterpret_cast<const std::uint8_t*>(&four), sizeof four, gid.begin() + 12);
  return gid == port.gid;
}

}  // namespace

std::size_t choose_port(std::span<const Port> ports, const std::string& own_address, std::string_view nearest,
                        int channel) {
  const auto near_one = std::ranges::find_if(ports, [&](const Port& port) { return port.device->name == nearest; });
  const auto is_near = [&](const Port& port) {
    return near_one != ports.end() && (port.device->name == nearest || (port.numa >= 0 && port.numa == near_one->numa));
  };
  std::vector<std::size_t> fastest, near;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (is_at(ports[i], own_address)) return i;
    if (ports[i].mbps != ports.front().mbps || ports[i].iwarp != ports.front().iwarp) continue;
    fastest.push_back(i);
    if (is_near(ports[i])) near.push_back(i);
  }
  const auto& from = near.empty() ? fastest : near;
  return from[static_cast<std::size_t>(channel) % from.size()];
}

}  // namespace tutti::verbs
