// The network addresses of this machine, and the kind of interface of each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tutti {

/// Ordered from the most likely to lead to other hosts to the one that reaches only this host.
enum class InterfaceKind {
  device,    ///< hardware, also emulated by a hypervisor; bonds, VLANs and bridges on top of it
  tunnel,    ///< tun, WireGuard, VXLAN and the like
  pair,      ///< one end of a veth pair: containers
  bridge,    ///< without a device among its ports: docker0, virbr0
  dummy,     ///< leads nowhere
  loopback,  ///< this host
};

std::string_view text(InterfaceKind kind);

struct InterfaceAddress {
  std::string interface;  ///< "eth0"
  std::string address;    ///< "10.0.0.5", "fd00::5", "fe80::5%eth0"
  bool ipv6 = false;
  InterfaceKind kind = InterfaceKind::device;
  bool up = true;           ///< switched on, and has a carrier
  bool link_local = false;  ///< 169.254.0.0/16, fe80::/10
  int mbps = 0;             ///< 0: unknown
};

/// The kernel's information about one link.
struct LinkFacts {
  int index = 0;
  std::string name;
  std::string kind;  ///< "veth", "bridge", "vlan", …; empty: hardware, or loopback
  int parent = 0;    ///< index of the link below; 0: none
  int master = 0;    ///< index of the bridge or bond it is a port of; 0: none
  bool loopback = false;
};

/// The kind of `link`, one of `links`: a VLAN has the kind of the link below it, a bridge that of its ports.
InterfaceKind kind_of(const LinkFacts& link, const std::vector<LinkFacts>& links);

/// For when the kernel gives no kind: guesses from the names that people and programs use.
InterfaceKind kind_of_name(std::string_view name);

/// All addresses of this network namespace, in the system's order. Errors: system.
Result<std::vector<InterfaceAddress>> list_addresses();

}  // namespace tutti
