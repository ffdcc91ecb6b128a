// Where other hosts may reach this process: by TUTTI_SOCKET_IFNAME and TUTTI_SOCKET_FAMILY, asked once; in a container
// that was just started, once its interface has a carrier.
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
  std::string host;  ///< numeric
  int nic = 0;       ///< number of its interface among those that are used
  int mbps = 0;      ///< of the interface; 0: not known
};

/// Thread-safe.
class OwnAddresses {
 public:
  using Lister = std::function<Result<std::vector<InterfaceAddress>>()>;

  /// `list`: instead of the system's own interfaces.
  explicit OwnAddresses(Lister list = {}) : list_(std::move(list)) {}

  /// Whether `get` answers at once. Where not, an interface that is awaited was looked at in this call or a moment ago:
  /// to be asked again, at `next_look_ns`. For at most two seconds in all.
  bool settled(System& system, const Config& config, Log& log);
  std::int64_t next_look_ns() const;

  /// Best first, never empty; a simulated system has but "127.0.0.1". Waits until it is settled. Logs once, at INFO,
  /// which were taken and why each other one was not. Errors: system, invalid_usage (none is left; each one's reason is
  /// told).
  Result<std::vector<OwnAddress>> get(System& system, const Config& config, Log& log);

 private:
  const Lister list_;
  mutable std::mutex mutex_;
  std::optional<Result<std::vector<OwnAddress>>> known_;
  std::int64_t next_look_ns_ = 0;
  std::int64_t give_up_ns_ = 0;  ///< 0: nobody has looked
};

/// Without what is known of their interfaces.
std::vector<std::string> hosts_of(const std::vector<OwnAddress>& addresses);

/// What a listener binds to so that all of `addresses` reach it: the one, or where there are several, any.
std::string listening_address(const std::vector<std::string>& addresses);

}  // namespace tutti
