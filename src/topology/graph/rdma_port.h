// A port of an RDMA device, as people look at it.
#pragma once

#include <string>
#include <vector>

namespace tutti::topology {

struct RdmaPort {
  /// An address of the port.
  struct Gid {
    int index = 0;
    std::string address;  ///< "fe80:0000:0000:0000:5054:00ff:fe77:0001"
    std::string type;     ///< "RoCE v2"; empty: unknown
    bool operator==(const Gid&) const = default;
  };
  std::string device;  ///< "mlx5_0"
  int number = 1;
  std::string state;       ///< "ACTIVE"
  std::string rate;        ///< "100 Gb/sec (4X EDR)"
  std::string link_layer;  ///< "InfiniBand" or "Ethernet"
  std::vector<Gid> gids;   ///< those that are set
};

}  // namespace tutti::topology
