// What the machine is: its devices, what each hangs from, and the links beside the PCI tree.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tutti::topology {

/// function: a PCI function of which only the address is known.
enum class DeviceKind : std::uint8_t { package, numa, host_bridge, bridge, gpu, nvswitch, nic, function };
std::string_view name(DeviceKind kind);

/// Links that are no part of the PCI tree. memory: between the CPU's own buses and a GPU (C2C, NVLink of POWER).
enum class LinkKind : std::uint8_t { nvlink, xgmi, memory };
std::string_view name(LinkKind kind);

/// Maker of a CPU, as far as the rate between two of them depends on it.
enum class CpuMaker : std::uint8_t { unknown, intel, amd, arm, power, zhaoxin };

/// How far apart two devices are, from the nearest. NCCL's kinds, and NODE, which it has not: one NUMA node, but
/// several host bridges.
enum class PathKind : std::uint8_t { loc, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, node, sys, net, dis };
std::string_view name(PathKind kind);  ///< "PIX"

struct Device {
  DeviceKind kind = DeviceKind::function;
  std::string name = {};        ///< "GPU0", "mlx5_0", "NUMA1", else the bus id
  std::string bus_id = {};      ///< "0000:81:00.0"; empty: none, or not known
  std::string partition = {};   ///< which part of the device at bus_id this is; empty: all of it
  int parent = -1;              ///< what it hangs from: bridge, host_bridge, numa, package; -1: nothing that is known
  int index = -1;               ///< gpu: its number in the machine; numa and package: the system's number
  int numa = -1;                ///< number of the NUMA node with CPUs that it is near to; -1: not known
  std::string cpus = {};        ///< numa, and gpu where it is said: "0-23,48-71"; empty: not known
  std::uint32_t pci_class = 0;  ///< 0x030200; 0: not known
  std::uint32_t vendor = 0, product = 0;
  double gbps = 0;                     ///< of the link to its parent, GB/s each way; 0: not known
  double gbps_max = 0;                 ///< what that link is made for, where it is trained below it; else 0
  double network_gbps = 0;             ///< nic: GB/s of its wire each way; 0: not known
  int compute = 0;                     ///< gpu: 90 is sm_90 of NVIDIA, 908 is gfx908 of AMD; 0: not known
  CpuMaker maker = CpuMaker::unknown;  ///< numa
  int model = 0;                       ///< numa: the CPU's model number
  int iommu_group = -1;                ///< gpu: functions of one group are not kept apart; -1: no IOMMU, or not known
  bool iommu_translates = false;       ///< gpu: its addresses go through the IOMMU
  bool anywhere = false;               ///< nic: said to be near every CPU
  bool off_fabric = false;             ///< gpu: its driver says that it has not joined the NVLink fabric
  std::string fabric = {};             ///< gpu: GPUs with the same share an NVLink fabric, of other hosts too
  int memory_numa = -1;                ///< gpu: number of the NUMA node that its memory is for the system; -1: none
  std::string source = {};             ///< who said that it is there

  bool operator==(const Device&) const = default;
};

/// One direction; the other is another Link.
struct Link {
  int from = 0;
  int to = 0;
  LinkKind kind = LinkKind::nvlink;
  int count = 0;          ///< bonded links
  double gbps = 0;        ///< of one of them
  double latency_us = 0;  ///< 0: not known
  std::string source = {};

  bool operator==(const Link&) const = default;
};

/// A value. Devices come after what they hang from; GPUs are in the order of their numbers.
struct Topology {
  std::string origin;  ///< "live", or the name of a file
  std::vector<Device> devices;
  std::vector<Link> links;
  bool nvlink_known = true;                             ///< false: nobody could be asked, so that no link says nothing
  std::map<std::pair<int, int>, PathKind> stated = {};  ///< kinds that were said and that the tree does not give
  std::map<std::pair<int, int>, std::string> p2p = {};  ///< between GPUs: OK, CNS, GNS, TNS, NS, DR, U
  std::string allowed_cpus = {};                        ///< "0-3": what this process may use; empty: not said, or all
  std::vector<std::string> notes = {};                  ///< what a source could not say, or said oddly; one line each

  bool operator==(const Topology&) const = default;

  std::vector<int> of_kind(DeviceKind kind) const;  ///< their ids, in order
  std::vector<int> gpus() const { return of_kind(DeviceKind::gpu); }
  std::vector<int> nics() const { return of_kind(DeviceKind::nic); }
  /// The nearest device above (or at) `device` of that kind; -1: none.
  int above(int device, DeviceKind kind) const;
  const Device& operator[](int device) const { return devices[static_cast<std::size_t>(device)]; }
  Device& operator[](int device) { return devices[static_cast<std::size_t>(device)]; }
  int add(Device device);                       ///< its id
  int find_bus(std::string_view bus_id) const;  ///< -1: none

  /// Bonded NVLink or xGMI links from one GPU to another, each way, directly or through switches; 0: none.
  int nvlinks(int gpu, int other) const;
  int direct_links(int from, int to) const;  ///< as the rows say, one direction
  int fabric_links(int gpu) const;           ///< to switches
  double nvlink_gbps(int gpu) const;         ///< of one link of this GPU; 0: it has none

  /// GPUs that are parts of the device at its address, it among them; itself where it is all of one.
  std::vector<int> parts_of(int gpu) const;
  /// Whether two GPUs are parts of one device that has NVLinks or xGMI: those are the device's, and serve all its
  /// parts.
  bool share_links(int gpu, int other) const;
};

/// What is drawn and searched is pairs of them, and paths between those: more would take minutes.
inline constexpr std::size_t machine_gpus_max = 256;

/// The machine as an indented tree, one line a device.
std::string tree_text(const Topology& topology);

/// The same machine with only these GPUs, by Device::index, which they keep. Numbers that no GPU has are left out.
Topology with_gpus(const Topology& topology, const std::vector<int>& numbers);

/// Keeps the devices that `keep` says, by id, and what refers to them.
Topology subset(const Topology& topology, const std::vector<bool>& keep);

/// GPUs in order of their numbers (those without: behind, as they came), and numbers for those without; devices after
/// their parents. Every source ends with this.
void settle(Topology& topology);

}  // namespace tutti::topology
