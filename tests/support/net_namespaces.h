// Several hosts in one machine: network namespaces, joined by a bridge. They have no names, and end with the test.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace tutti::testing {

/// What is wrong with the network for the test's purpose; see NetNamespaces.
struct NetOptions {
  int hosts = 2;
  bool ipv4 = true;
  bool ipv6 = false;
};

/// Each host has a loopback interface and "eth0", the other end of which is a port of a bridge in a namespace of its
/// own. Addresses are 10.77.0.(host + 1)/24 and fd77::(host + 1)/64.
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
  std::string address(int host) const;

  /// Runs `ip WORDS` on the host; -1 is the bridge's. Words are separated by spaces.
  bool ip(int host, const std::string& words) const;

  /// The cable is pulled out of the host: its own interface still looks well.
  bool cut(int host) const { return ip(bridge, "link set port" + std::to_string(host) + " down"); }
  bool mend(int host) const { return ip(bridge, "link set port" + std::to_string(host) + " up"); }
  /// What `host` sends to `other` vanishes.
  bool blackhole(int host, int other) const;

  static constexpr int bridge = -1;

 private:
  pid_t start_holder();
  bool connect(int host);
  pid_t holder(int host) const { return host == bridge ? bridge_ : holders_[static_cast<std::size_t>(host)]; }

  NetOptions options_;
  pid_t bridge_ = -1;
  std::vector<pid_t> holders_;  // by host: a process that does nothing but live there
  bool made_ = false;
};

}  // namespace tutti::testing
