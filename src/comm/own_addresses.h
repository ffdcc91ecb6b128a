// Where other hosts may reach this process: by TUTTI_SOCKET_IFNAME and TUTTI_SOCKET_FAMILY, asked once.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/system.h"

namespace tutti {

struct OwnAddress {
  std::string host;  ///< numeric
  int card = 0;      ///< number of its interface among those that are used
  int mbps = 0;      ///< of the interface; 0: not known
};

/// Thread-safe.
class OwnAddresses {
 public:
  /// Best first, never empty; a simulated system has but "127.0.0.1". The first call logs, at INFO, which were
  /// taken and why each other one was not. Errors: system, invalid_usage (none is left; each one's reason is told).
  Result<std::vector<OwnAddress>> get(System& system, const Config& config, Log& log);

 private:
  std::mutex mutex_;
  std::optional<Result<std::vector<OwnAddress>>> known_;
};

/// Without what is known of their interfaces.
std::vector<std::string> hosts_of(const std::vector<OwnAddress>& addresses);

/// What a listener binds to so that all of `addresses` reach it: the one, or where there are several, any.
std::string listening_address(const std::vector<std::string>& addresses);

}  // namespace tutti
