// How one device reaches another: over what, how fast, in how many hops.
#pragma once

#include <string>
#include <vector>

#include "topology/graph/topology.h"

namespace tutti::topology {

struct Path {
  PathKind kind = PathKind::dis;
  double gbps = 0;      ///< of the narrowest link; 0: no rate of it is known
  int hops = 0;         ///< links on the way
  std::vector<int> by;  ///< devices on the way, both ends with it

  bool operator==(const Path&) const = default;
};

/// Through PCI, host bridges and CPUs alone, as nvmlDeviceGetTopologyCommonAncestor classes it.
Path pci_path(const Topology& topology, int from, int to);

/// The nearest way there is, then the one with most GB/s: NVLink (also by one other GPU), C2C, PCI, and to a NIC by way
/// of a GPU that is nearer to it (PXN).
Path path(const Topology& topology, int from, int to);

/// What `nvidia-smi topo -m` shows: "X", "NV4", "PIX", …
std::string cell(const Topology& topology, int from, int to);

/// GPUs, then NICs: the rows and columns of the matrix.
std::vector<int> matrix_devices(const Topology& topology);

/// The matrix as nvidia-smi prints it, with affinities and a legend.
std::string matrix_text(const Topology& topology);

/// GB/s of a device's link to its parent, as far as it is believable: a bridge made up by a hypervisor says that it is
/// far slower than what is below it.
double uplink_gbps(const Topology& topology, int device);

/// GB/s between two CPUs of this machine.
double cpu_gbps(const Topology& topology);

}  // namespace tutti::topology
