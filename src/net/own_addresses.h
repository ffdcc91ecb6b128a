// The addresses at which other hosts may reach this process. TUTTI_SOCKET_IFNAME and TUTTI_SOCKET_FAMILY choose them,
// once; in a container that has just started, once its interface has a carrier.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "base/interfaces.h"
#include "base/log.h"
#include "base/system.h"

namespace tutti {

struct OwnAddress {
  std::string host;            ///< numeric
  int nic = 0;                 ///< number of its interface among those in use
  int mbps = 0;                ///< of the interface; 0: not known
  std::string interface = {};  ///< "eth0"
};

/// The MTU of an interface of this host as it is now; 0: not known.
int mtu_of(const std::string& interface);

/// Thread-safe.
class OwnAddresses {
 public:
  using Lister = std::function<Result<std::vector<InterfaceAddress>>()>;

  /// `list` replaces the system's own interfaces.
  explicit OwnAddresses(Lister list = {}) : list_(std::move(list)) {}

  /// Whether `get` answers at once. If not, this call or one a moment ago has checked an interface without a carrier:
  /// ask again at `next_look_ns`. This takes at most two seconds in total.
  bool settled(System& system, const Config& config, Log& log);
  std::int64_t next_look_ns() const;

  /// Best first, never empty; a simulated system has only "127.0.0.1". Waits until settled. Logs once, at INFO, which
  /// interfaces were chosen and why each other one was not. Errors: system, invalid_usage (none is left; gives each
  /// one's reason).
  Result<std::vector<OwnAddress>> get(System& system, const Config& config, Log& log);

 private:
  const Lister list_;
  mutable std::mutex mutex_;
  std::optional<Result<std::vector<OwnAddress>>> known_;
  std::int64_t next_look_ns_ = 0;
  std::int64_t give_up_ns_ = 0;  ///< 0: not checked yet
};

/// The hosts alone, without their interfaces.
std::vector<std::string> hosts_of(const std::vector<OwnAddress>& addresses);

/// The address to bind a listener to so that all of `addresses` reach it: the only one, or the wildcard if there are
/// several.
std::string listening_address(const std::vector<std::string>& addresses);

}  // namespace tutti
