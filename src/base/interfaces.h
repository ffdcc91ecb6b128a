// The network addresses of this machine, and what kind of interface each belongs to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tutti {

/// From what other hosts are most likely behind to what reaches this one alone.
enum class InterfaceKind {
  device,    ///< hardware or what a hypervisor shows as such; bonds, VLANs and bridges that stand on one
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
  bool up = true;           ///< switched on, and with a carrier
  bool link_local = false;  ///< 169.254.0.0/16, fe80::/10
  int mbps = 0;             ///< 0: not known
};

/// What the kernel says of one link.
struct LinkFacts {
  int index = 0;
  std::string name;
  std::string kind;  ///< "veth", "bridge", "vlan", …; empty: hardware, or loopback
  int parent = 0;    ///< index of the link below; 0: none
  int master = 0;    ///< index of the bridge or bond it is a port of; 0: none
  bool loopback = false;
};

/// The kind of `link`, one of `links`: of a VLAN it is the one below, of a bridge its ports tell.
InterfaceKind kind_of(const LinkFacts& link, const std::vector<LinkFacts>& links);

/// Where the kernel does not say: by the names that people and programs give.
InterfaceKind kind_of_name(std::string_view name);

/// All of this network namespace, as the system lists them. Errors: system.
Result<std::vector<InterfaceAddress>> list_addresses();

}  // namespace tutti
