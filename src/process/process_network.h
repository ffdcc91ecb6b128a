// How a process reaches other hosts and is reached by them: its addresses, its RDMA ports, its listeners.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/config.h"
#include "base/log.h"
#include "base/system.h"
#include "bootstrap/shared_listener.h"
#include "net/connection_server.h"
#include "net/own_addresses.h"
#include "process/rdma_devices.h"
#include "process/service.h"

namespace tutti {

/// Thread-safe.
class ProcessNetwork {
 public:
  /// All of these must outlive this.
  ProcessNetwork(System& system, const Config& config, Log& log, Service& service)
      : system_(system), config_(config), log_(log), service_(service) {}

  /// Accepts connections from ranks of other hosts; listens from the first call on. Errors: system (no address, no
  /// descriptor).
  Result<std::shared_ptr<ConnectionServer>> connections();

  /// The listener for the starts whose root is in this process: one per address, for port 0 on any port. Errors:
  /// system.
  Result<std::shared_ptr<bootstrap::SharedListener>> shared_listener(const SocketAddress& at);

  OwnAddresses interfaces;
  RdmaDevices rdma;

 private:
  System& system_;
  const Config& config_;
  Log& log_;
  Service& service_;
  std::mutex mutex_;
  std::shared_ptr<ConnectionServer> connections_;
  std::map<std::pair<std::string, std::uint16_t>, std::weak_ptr<bootstrap::SharedListener>> listeners_;
};

}  // namespace tutti
