// Which of a machine's addresses to use: those that the user named, or else those that other hosts most likely reach.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/interfaces.h"

namespace tutti {

/// In the syntax of the settings; see docs/settings.md.
struct InterfaceFilter {
  std::string names;           ///< TUTTI_SOCKET_IFNAME: "eth,en", "=eth0", "^docker", "^=lo"; empty: none
  std::string family = "ANY";  ///< TUTTI_SOCKET_FAMILY: ANY, AF_INET, AF_INET6
};

struct InterfaceChoice {
  struct LeftOut {
    InterfaceAddress address;
    std::string why;
  };
  std::vector<InterfaceAddress> used;  ///< best first; never empty
  std::vector<LeftOut> left_out;

  /// "eth0 10.0.0.5 (device, 25000 Mbit/s)" for each, for the log.
  std::vector<std::string> used_text() const;
  /// "docker0 172.17.0.1: bridge without a device, …" for each.
  std::vector<std::string> left_out_text() const;
};

/// Without names: fast devices first. Interfaces that are less likely to lead to another host (tunnels, then veth
/// pairs, then bridges, then link-local addresses, then loopback) are used only if there is nothing better. One address
/// of each family per interface. Named interfaces are used whatever their kind, in the order of the list; with excluded
/// names, the choice is made from the other interfaces as without names. Errors: invalid_usage (none is left; gives
/// each one's reason).
Result<InterfaceChoice> choose_interfaces(std::span<const InterfaceAddress> all, const InterfaceFilter& filter);

/// Addresses that are not in use because their interface is down or without a carrier, and that may soon have one:
/// "eth0 10.0.0.5" for each, for the log. Empty if another address already leads to other hosts, or if none can be
/// expected.
std::vector<std::string> awaited_interfaces(std::span<const InterfaceAddress> all, const InterfaceFilter& filter);

}  // namespace tutti
