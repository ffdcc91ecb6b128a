// The ports of RDMA devices as the kernel shows them: no library is needed.
#pragma once

#include <string>
#include <vector>

#include "topology/graph/rdma_port.h"

namespace tutti::topology {

/// Of ROOT/sys/class/infiniband, by device and port; empty if there are none.
std::vector<RdmaPort> rdma_ports(const std::string& root = "");

}  // namespace tutti::topology
