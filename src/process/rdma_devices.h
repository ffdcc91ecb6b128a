// The RDMA ports of this machine, as they are when a communicator starts.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "base/system.h"
#include "transport/verbs/port.h"

namespace tutti {

/// Thread-safe.
class RdmaDevices {
 public:
  /// Fastest first; there is at least one. Looks again after a second, as ports go down and come back. Logs what was
  /// found if it differs from the last time; warns where devices are there and none can be used. Errors: system (no
  /// libibverbs, no device, no port that can be used; with each port's reason).
  Result<std::vector<verbs::Port>> ports(System& system, const Config& config, Log& log);

  /// Whether nothing was said yet of this reason not to use RDMA, in this process. To be asked once.
  bool is_news(const std::string& why);

  /// A task that reads what devices report by themselves (a port goes down, a queue is broken), notes faults (see
  /// verbs::DeviceFaults) and writes it to the log, which must outlive the task; null if it watches all devices
  /// already.
  std::shared_ptr<Task> events(Log& log);

 private:
  Result<std::vector<verbs::Port>> look(const Config& config, Log& log);
  void say(const verbs::PortList& list, const std::string& left_out, const Config& config, Log& log);

  std::mutex mutex_;
  std::optional<Result<std::vector<verbs::Port>>> known_;
  std::int64_t looked_ns_ = 0;
  std::shared_ptr<const verbs::Library> library_;
  std::vector<std::shared_ptr<verbs::OpenDevice>> devices_;  ///< open
  std::vector<std::weak_ptr<verbs::OpenDevice>> watched_;
  std::string said_;  ///< the last line in the log
  std::set<std::string> reasons_;
};

}  // namespace tutti
