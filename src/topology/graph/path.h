// Paths between devices: over which devices, how fast, in how many hops.
#pragma once

#include <string>
#include <vector>

#include "topology/graph/topology.h"

namespace tutti::topology {

struct Path {
  PathKind kind = PathKind::dis;
  double gbps = 0;      ///< of the slowest link; 0: no link's rate is known
  int hops = 0;         ///< number of links
  std::vector<int> by;  ///< devices on the path, including both ends

  bool operator==(const Path&) const = default;
};

/// The path through PCI, host bridges and CPUs only, classified as by nvmlDeviceGetTopologyCommonAncestor.
Path pci_path(const Topology& topology, int from, int to);

/// The nearest path; among equally near ones, the one with most GB/s. Uses NVLink (also through one other GPU), C2C,
/// PCI, and, to a NIC, a GPU that is nearer to it (PXN).
Path path(const Topology& topology, int from, int to);

/// The cell that `nvidia-smi topo -m` shows: "X", "NV4", "PIX", …
std::string cell(const Topology& topology, int from, int to);

/// GPUs, then NICs: the rows and columns of the matrix.
std::vector<int> matrix_devices(const Topology& topology);

/// The matrix in nvidia-smi's format, with affinities and a legend.
std::string matrix_text(const Topology& topology);

/// The devices above it, from the root on, and itself: sorting by this puts neighbours next to each other.
std::vector<int> way_to(const Topology& topology, int device);

/// GB/s of a device's link to its parent, as far as plausible: an emulated bridge of a hypervisor reports a much lower
/// rate than the devices below it.
double uplink_gbps(const Topology& topology, int device);

/// GB/s between two CPUs of this machine.
double cpu_gbps(const Topology& topology);

}  // namespace tutti::topology
