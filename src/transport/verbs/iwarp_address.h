// The IP address of an iWARP port, by which rdma_cm finds it.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>

#include "transport/verbs/abi.h"

namespace tutti::verbs {

/// An address of the network interface whose MAC address is the beginning of the port's GID, as it is with iWARP; IPv4
/// before IPv6, in the form of a GID. Nothing: there is no such interface, or it has no address.
std::optional<Gid> iwarp_address(const Gid& gid);

bool maps_ipv4(const Gid& address);
bool is_link_local(const Gid& address);

/// The address, with a port number, for functions that take a sockaddr.
sockaddr_storage socket_address(const Gid& address, std::uint16_t port);

}  // namespace tutti::verbs
