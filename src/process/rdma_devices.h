// The RDMA ports of this machine: found once per process, when a communicator first starts.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "base/system.h"
#include "transport/verbs/port.h"

namespace tutti {

/// Thread-safe.
class RdmaDevices {
 public:
  /// Fastest first; there is at least one. Logs once what was found. Errors: system (no libibverbs, no device, no port
  /// that can be used; with each port's reason).
  Result<std::vector<verbs::Port>> ports(const Config& config, Log& log);

  /// A task that reads what devices report by themselves (a port goes down, a queue is broken) and writes it to the
  /// log, which must outlive the task; null after the first time.
  std::shared_ptr<Task> events(Log& log);

 private:
  std::mutex mutex_;
  std::optional<Result<std::vector<verbs::Port>>> known_;
  bool watched_ = false;
};

}  // namespace tutti
