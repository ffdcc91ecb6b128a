// Which of a machine's RDMA ports carries a channel.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "transport/verbs/port.h"

namespace tutti::verbs {

/// The index of the port with the address over which the peer was reached (`own_address`, of IPv4 or IPv6): it is
/// proven. If no port has it, the fastest ports in turn by channel: those of the device `nearest` to the rank and of
/// its NUMA node if there are some among them, else all. `ports`: fastest first, at least one.
std::size_t choose_port(std::span<const Port> ports, const std::string& own_address, std::string_view nearest,
                        int channel);

}  // namespace tutti::verbs
