// The machine: its devices, the parent of each, and the links outside the PCI tree.
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

/// Links outside the PCI tree. memory: between the CPU's own buses and a GPU (C2C, NVLink of POWER).
enum class LinkKind : std::uint8_t { nvlink, xgmi, memory };
std::string_view name(LinkKind kind);

/// Maker of a CPU, as far as it determines the rate between two CPUs.
enum class CpuMaker : std::uint8_t { unknown, intel, amd, arm, power, zhaoxin };

/// The distance of two devices, from near to far. NCCL's kinds, and NODE, which NCCL lacks: one NUMA node, but several
/// host bridges.
enum class PathKind : std::uint8_t { loc, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, node, sys, net, dis };
std::string_view name(PathKind kind);  ///< "PIX"

struct Device {
  DeviceKind kind = DeviceKind::function;
  std::string name = {};        ///< "GPU0", "mlx5_0", "NUMA1", else the bus id
  std::string bus_id = {};      ///< "0000:81:00.0"; empty: none, or unknown
  std::string partition = {};   ///< which part of the device at bus_id this is; empty: all of it
  int parent = -1;              ///< bridge, host_bridge, numa or package above it; -1: none known
  int index = -1;               ///< gpu: its number in the machine; numa and package: the system's number
  int numa = -1;                ///< number of the nearest NUMA node with CPUs; -1: unknown
  std::string cpus = {};        ///< of numa, and of gpu if reported: "0-23,48-71"; empty: unknown
  std::uint32_t pci_class = 0;  ///< 0x030200; 0: unknown
  std::uint32_t vendor = 0, product = 0;
  double gbps = 0;                     ///< of the link to its parent, GB/s in each direction; 0: unknown
  double gbps_max = 0;                 ///< the maximum of that link if it runs below it; else 0
  double network_gbps = 0;             ///< nic: GB/s of its network link in each direction; 0: unknown
  int compute = 0;                     ///< gpu: 90 is sm_90 of NVIDIA, 908 is gfx908 of AMD; 0: unknown
  CpuMaker maker = CpuMaker::unknown;  ///< numa
  int model = 0;                       ///< numa: the CPU's model number
  /// gpu: functions of one group are not isolated from each other; -1: no IOMMU, or unknown
  int iommu_group = -1;
  bool iommu_translates = false;  ///< gpu: its addresses go through the IOMMU
  bool anywhere = false;          ///< nic: reported as near every CPU
  bool off_fabric = false;        ///< gpu: its driver reports that it has not joined the NVLink fabric
  std::string fabric = {};        ///< gpu: GPUs with the same value share an NVLink fabric, also across hosts
  int memory_numa = -1;           ///< gpu: number of the NUMA node that the system has for its memory; -1: none
  std::string source = {};        ///< the source that reported it

  bool operator==(const Device&) const = default;
};

/// One direction of a link; the other direction is a separate Link.
struct Link {
  int from = 0;
  int to = 0;
  LinkKind kind = LinkKind::nvlink;
  int count = 0;    ///< number of bonded links
  double gbps = 0;  ///< of one of them
  std::string source = {};

  bool operator==(const Link&) const = default;
};

/// A value. Devices come after their parents; GPUs are in the order of their numbers.
struct Topology {
  std::string origin;  ///< "live", or the name of a file
  std::vector<Device> devices;
  std::vector<Link> links;
  /// false: no source could report NVLinks, so the absence of links means nothing
  bool nvlink_known = true;
  std::map<std::pair<int, int>, PathKind> stated = {};  ///< kinds that were reported and do not follow from the tree
  std::map<std::pair<int, int>, std::string> p2p = {};  ///< between GPUs: OK, CNS, GNS, TNS, NS, DR, U
  /// "0-3": CPUs that this process may use; empty: unknown, or all
  std::string allowed_cpus = {};
  /// what a source could not report, or reported inconsistently; one line each
  std::vector<std::string> notes = {};

  bool operator==(const Topology&) const = default;

  std::vector<int> of_kind(DeviceKind kind) const;  ///< ids, in order
  std::vector<int> gpus() const { return of_kind(DeviceKind::gpu); }
  std::vector<int> nics() const { return of_kind(DeviceKind::nic); }
  /// The nearest device of this kind above (or at) `device`; -1: none.
  int above(int device, DeviceKind kind) const;
  const Device& operator[](int device) const { return devices[static_cast<std::size_t>(device)]; }
  Device& operator[](int device) { return devices[static_cast<std::size_t>(device)]; }
  int find(DeviceKind kind, int index) const;   ///< the first with this Device::index; -1: none
  int add(Device device);                       ///< returns its id
  int find_bus(std::string_view bus_id) const;  ///< -1: none

  /// Number of bonded NVLink or xGMI links from one GPU to another, in each direction, directly or through switches; 0:
  /// none.
  int nvlinks(int gpu, int other) const;
  int direct_links(int from, int to) const;  ///< according to the rows, in one direction
  int fabric_links(int gpu) const;           ///< to switches
  /// A switch that stands for those that this GPU reaches; -1: none. Switches with an address are taken as connected
  /// with each other; one without stands for a whole fabric.
  int fabric_of(int gpu) const;
  double nvlink_gbps(int gpu) const;  ///< of one link of this GPU; 0: it has none

  /// GPUs that are parts of the device at this GPU's address, including it; itself if it is the whole device.
  std::vector<int> parts_of(int gpu) const;
  /// Whether two GPUs are parts of one device that has NVLinks or xGMI: these links belong to the device and serve all
  /// its parts.
  bool share_links(int gpu, int other) const;
};

/// Drawing and search handle all pairs of GPUs and the paths between them: more GPUs would take minutes.
inline constexpr std::size_t machine_gpus_max = 256;

/// The machine as an indented tree, one line per device.
std::string tree_text(const Topology& topology);

/// The same machine with only these GPUs, by Device::index, which they keep. Numbers without a GPU are ignored.
Topology with_gpus(const Topology& topology, const std::vector<int>& numbers);

/// Keeps the devices for which `keep` is true, by id, and everything that refers to them.
Topology subset(const Topology& topology, const std::vector<bool>& keep);

/// Sorts GPUs by number (those without a number last, in their order) and numbers those without; puts devices after
/// their parents. Every source ends with this call.
void normalise(Topology& topology);

}  // namespace tutti::topology
