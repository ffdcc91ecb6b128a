// Which of a machine's addresses to use: what the user wished, or else those that other hosts most likely reach.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/interfaces.h"

namespace tutti {

/// In the words of the settings; see docs/settings.md.
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

  /// "eth0 10.0.0.5 (device, 25000 Mbit/s)" each, for the log.
  std::vector<std::string> used_text() const;
  /// "docker0 172.17.0.1: bridge without a device, …" each.
  std::vector<std::string> left_out_text() const;
};

/// Without a wish: fast devices first; of what is less likely to lead to another host (tunnels, then veth pairs, then
/// bridges, then link-local addresses, at last loopback) only where nothing better is left. One address of each family
/// per interface. Names that are wished are taken whatever they are, in the order of the list; of names that are
/// excluded the others are chosen from as without a wish.
/// Errors: invalid_usage (none is left; each one's reason is told).
Result<InterfaceChoice> choose_interfaces(std::span<const InterfaceAddress> all, const InterfaceFilter& filter);

/// Addresses that are not used as long as their interface is down or without a carrier, and that may well have one in
/// a moment: "eth0 10.0.0.5" each, for the log. Empty where another one leads to other hosts already, or none may come.
std::vector<std::string> awaited_interfaces(std::span<const InterfaceAddress> all, const InterfaceFilter& filter);

}  // namespace tutti
