// Settings of a connection between two ranks that are made before its first byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/system.h"

namespace tutti {

/// Sets the congestion control of a connected socket as TUTTI_SOCKET_CC says: empty (automatic), "system" (the system's
/// default), or a name. If the named one is not available, the socket stays as it is. Returns the one now in use.
///
/// Automatic: if both ends are on this machine and the system uses bbr, cubic replaces it, else reno: bbr paces traffic
/// that no network slows down.
inline std::string choose_congestion(System& system, Socket& socket, std::string_view wanted) {
  const auto within_this_machine = [&] {
    const auto here = system.address(socket), there = system.peer_address(socket);
    return here && there && here->host == there->host;
  };
  if (wanted.empty()) {
    if (system.congestion(socket).starts_with("bbr") && within_this_machine())
      if (!system.set_congestion(socket, "cubic")) system.set_congestion(socket, "reno");
  } else if (wanted != "system") {
    system.set_congestion(socket, std::string(wanted));
  }
  return system.congestion(socket);
}

/// For System::set_patience: control connections notice a cut of the network after TUTTI_SILENCE_MS. The connections
/// themselves last longer: after a cut TCP may wait for as long as it was. Three seconds where there is no limit:
/// nothing else notices it there.
inline std::int64_t patience_ns(std::int64_t silence_ns) {
  return silence_ns == 0 ? 3'000'000'000 : 3 * silence_ns + 2'000'000'000;
}

}  // namespace tutti
