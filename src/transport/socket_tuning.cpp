// Chooses the congestion control of a connection.
#include "transport/socket_tuning.h"

namespace tutti {
namespace {

bool within_this_machine(System& system, const Socket& socket) {
  const auto here = system.address(socket), there = system.peer_address(socket);
  return here && there && here->host == there->host;
}

}  // namespace

std::string choose_congestion(System& system, Socket& socket, std::string_view wanted) {
  if (wanted.empty()) {
    if (system.congestion(socket).starts_with("bbr") && within_this_machine(system, socket))
      if (!system.set_congestion(socket, "cubic")) system.set_congestion(socket, "reno");
  } else if (wanted != "system") {
    system.set_congestion(socket, std::string(wanted));
  }
  return system.congestion(socket);
}

}  // namespace tutti
