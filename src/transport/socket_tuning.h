// What is set on a connection for data before its first byte.
#pragma once

#include <string>
#include <string_view>

#include "base/system.h"

namespace tutti {

/// Chooses the congestion control of a connected socket, as TUTTI_SOCKET_CC says: empty (by itself), "system" (what the
/// system gives), or the name of one. A name that cannot be had leaves the socket as it is. Returns what it has now.
///
/// By itself: cubic, else reno, instead of bbr where both ends are on this machine: bbr paces what no wire slows down.
std::string choose_congestion(System& system, Socket& socket, std::string_view wanted);

}  // namespace tutti
