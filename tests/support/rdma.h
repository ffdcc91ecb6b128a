// RDMA for ranks of tests: by the fake library of support/fake_verbs, or by the devices of this machine if
// TUTTI_TEST_RDMA=devices.
#pragma once

#include <string>
#include <vector>

namespace tutti::testing {

/// What joins the fake devices of one team's processes, as long as the object lives.
class RdmaFabric {
 public:
  RdmaFabric();
  ~RdmaFabric();
  RdmaFabric(const RdmaFabric&) = delete;
  RdmaFabric& operator=(const RdmaFabric&) = delete;

  /// "NAME=VALUE" of all processes; nothing if the machine's devices are used.
  std::vector<std::string> environment() const;

  /// Sets it in this process.
  void join() const;

  /// Whether ranks use the machine's devices, not the fake ones.
  static bool by_devices();

  /// Whether ranks with these settings use RDMA.
  static bool wanted(const std::vector<std::string>& environment);

 private:
  std::string path_;
};

}  // namespace tutti::testing
