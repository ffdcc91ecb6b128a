// Settings of a data connection that are made before its first byte.
#pragma once

#include <string>
#include <string_view>

#include "base/system.h"

namespace tutti {

/// Sets the congestion control of a connected socket as TUTTI_SOCKET_CC says: empty (automatic), "system" (the system's
/// default), or a name. If the named one is not available, the socket stays as it is. Returns the one now in use.
///
/// Automatic: if both ends are on this machine and the system uses bbr, cubic replaces it, else reno: bbr paces traffic
/// that no network slows down.
std::string choose_congestion(System& system, Socket& socket, std::string_view wanted);

}  // namespace tutti
