// Who this process is, for messages and for other processes.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "base/error.h"
#include "transport/fd_server.h"

namespace tutti {

class ProcessIdentity {
 public:
  ProcessIdentity();

  /// Makes token and key, unless they are there. Any thread. Errors: system.
  Result<void> make();

  std::uint64_t token = 0;  ///< random: distinguishes processes, whatever their PID namespaces
  ProcessKey key{};
  std::string host;     ///< for messages
  std::string boot_id;  ///< equal for all processes on one running kernel

 private:
  std::mutex mutex_;
};

}  // namespace tutti
