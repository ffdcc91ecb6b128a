// Several hosts in one machine: network namespaces, joined by a bridge. They have no names, and end with the test.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/packet_wire.h"

namespace tutti::testing {

/// What is wrong with the network for the test's purpose; see NetNamespaces.
struct NetOptions {
  int hosts = 2;
  bool ipv4 = true;
  bool ipv6 = false;
  int nics = 1;                         ///< of each host, each in a network of its own
  std::vector<WireFaults> faults = {};  ///< by NIC: not a bridge but a PacketWire; the last one of all that follow
};

/// Each host has a loopback interface and "eth0", the other end of which is a port of a bridge in a namespace of its
/// own; and so on for further NICs. Addresses of NIC c are 10.77.c.(host + 1)/24 and fd77:c::(host + 1)/64.
class NetNamespaces {
 public:
  /// Why there can be none here: not root, no `ip`, namespaces forbidden. Tests say so and are skipped.
  static std::optional<std::string> unavailable();

  explicit NetNamespaces(const NetOptions& options);
  ~NetNamespaces();
  NetNamespaces(const NetNamespaces&) = delete;
  NetNamespaces& operator=(const NetNamespaces&) = delete;

  /// False when something of the set-up failed; what, was printed.
  bool made() const { return made_; }

  /// The calling thread, and those it starts, live there from now on. Before anything opens a socket.
  bool enter(int host) const;

  /// "10.77.0.1", or "fd77::1" where there is no IPv4.
  std::string address(int host, int nic = 0) const;

  /// Runs `ip WORDS` on the host; -1 is the bridge's. Words are separated by spaces.
  bool ip(int host, const std::string& words) const;

  /// The cable is pulled out of the host: its own interface still looks well.
  bool cut(int host, int nic = 0) const;
  /// Where there are faults.
  PacketWire& wire(int nic = 0) const { return *wires_[static_cast<std::size_t>(nic)]; }
  /// What `host` sends to `other` vanishes.
  bool blackhole(int host, int other) const;

  static constexpr int bridge = -1;

 private:
  bool connect(int host, int nic);
  pid_t holder(int host) const { return host == bridge ? bridge_ : holders_[static_cast<std::size_t>(host)]; }

  NetOptions options_;
  pid_t bridge_ = -1;
  std::vector<pid_t> holders_;                      // by host: a process that does nothing but live there
  std::vector<std::unique_ptr<PacketWire>> wires_;  // by NIC
  bool made_ = false;
};

}  // namespace tutti::testing
