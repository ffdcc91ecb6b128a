// The RDMA ports of this machine: found once per process, when a communicator first starts.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "transport/verbs/port.h"

namespace tutti {

/// Thread-safe.
class RdmaDevices {
 public:
  /// Fastest first; there is at least one. Logs once what was found. Errors: system (no libibverbs, no device, no port
  /// that can be used; with each port's reason).
  Result<std::vector<verbs::Port>> ports(const Config& config, Log& log);

 private:
  std::mutex mutex_;
  std::optional<Result<std::vector<verbs::Port>>> known_;
};

}  // namespace tutti
