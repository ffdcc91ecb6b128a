// Adds what /sys reports about PCI functions, NICs and NUMA nodes.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "base/file.h"
#include "topology/graph/cpus.h"
#include "topology/graph/pci.h"
#include "topology/sources/detect.h"
#include "topology/sources/sysfs_files.h"

namespace tutti::topology {
namespace {

std::string real_path(const std::string& path) {
  char* const resolved = ::realpath(path.c_str(), nullptr);
  const std::string found = resolved ? resolved : "";
  std::free(resolved);  // NOLINT: allocated by realpath
  return found;
}

constexpr std::size_t devices_max = 4096;

class Walker {
 public:
  Walker(Topology& topology, const std::string& root) : topology_(topology), sys_(root + "/sys") {}
  void walk();

 private:
  void nodes();
  void node(int number, const std::string& cpus);
  int package(int cpu);
  void makers();
  void functions();
  void isolation(Device& device, const std::string& group) const;
  bool is_usable(const Device& device, const std::string& folder) const;
  void rate(Device& device, const std::string& folder);
  void name_nic(Device& device, const std::string& folder);
  int parent_of(const std::string& real, int numa);
  int bridge(const std::string& folder, const std::string& bus_id, int parent);
  int home(int numa);
  int nearest_with_cpus(int numa) const;

  Topology& topology_;
  std::string sys_;
  std::map<std::string, int> made_;  // bridges and roots by path
};

/// The maker and model number of the CPUs, from /proc/cpuinfo.
void Walker::makers() {
  const auto cpuinfo = read_file(sys_.substr(0, sys_.size() - 3) + "proc/cpuinfo");
  if (!cpuinfo) return;
  const auto behind = [&](std::string_view key) {
    const std::size_t at = cpuinfo->find(key), colon = cpuinfo->find(':', at);
    if (at == std::string::npos || colon == std::string::npos) return std::string();
    const std::size_t first = cpuinfo->find_first_not_of(" \t", colon + 1), end = cpuinfo->find('\n', colon);
    return first < end ? cpuinfo->substr(first, end - first) : std::string();
  };
  const bool arm = cpuinfo->find("CPU implementer") != std::string::npos;
  const bool power = cpuinfo->find("POWER") != std::string::npos;
  const std::string model = behind("\nmodel\t");
  for (const int id : topology_.of_kind(DeviceKind::numa)) {
    topology_[id].maker = maker_of(behind("vendor_id"), arm ? "aarch64" : power ? "ppc64" : "");
    std::from_chars(model.data(), model.data() + model.size(), topology_[id].model);
  }
}

/// The package of a CPU; -1: unknown.
int Walker::package(int cpu) {
  const int number = number_of(fmt::format("{}/devices/system/cpu/cpu{}/topology/physical_package_id", sys_, cpu), -1);
  if (number < 0) return -1;
  if (const int known = topology_.find(DeviceKind::package, number); known >= 0) return known;
  return topology_.add(
      {.kind = DeviceKind::package, .name = fmt::format("CPU{}", number), .index = number, .source = "sysfs"});
}

void Walker::node(int number, const std::string& cpus) {
  const std::vector<int> all = cpus_of_list(cpus);
  topology_.add({.kind = DeviceKind::numa,
                 .name = fmt::format("NUMA{}", number),
                 .parent = all.empty() ? -1 : package(all.front()),
                 .index = number,
                 .numa = number,
                 .cpus = cpus,
                 .source = "sysfs"});
}

void Walker::nodes() {
  const std::string folder = sys_ + "/devices/system/node";
  for (const int number : node_numbers(folder)) {
    std::string cpus = cpu_list_of_mask(line_of(fmt::format("{}/node{}/cpumap", folder, number)));
    if (cpus.empty()) cpus = list_of_cpus(cpus_of_list(line_of(fmt::format("{}/node{}/cpulist", folder, number))));
    if (!cpus.empty()) node(number, cpus);  // memory without CPUs belongs to a GPU
  }
  // A kernel without NUMA support.
  const std::string online = list_of_cpus(cpus_of_list(line_of(sys_ + "/devices/system/cpu/online")));
  if (topology_.of_kind(DeviceKind::numa).empty() && !online.empty()) node(0, online);
}

/// The NUMA node of this number; if the number is unknown and there is only one node, that node (virtual machines).
int Walker::home(int numa) {
  if (const int known = topology_.find(DeviceKind::numa, numa); known >= 0) return known;
  const std::vector<int> nodes = topology_.of_kind(DeviceKind::numa);
  return nodes.size() == 1 ? nodes.front() : -1;
}

/// The link between a port and a device has the rate of its slower end.
void Walker::rate(Device& device, const std::string& folder) {
  const auto gbps = [&](const std::string& where, const char* which) {
    const std::string speed = line_of(fmt::format("{}/{}_link_speed", where, which));
    if (speed.empty() || speed.starts_with("Unknown")) return 0.0;
    return pci_gbps(speed, number_of(fmt::format("{}/{}_link_width", where, which), 0));
  };
  const double own = gbps(folder, "max"), port = gbps(folder + "/..", "max"), now = gbps(folder, "current");
  device.gbps = own > 0 && port > 0 ? std::min(own, port) : std::max(own, port);
  // An idle link reduces its speed to save power, but keeps its width: a width below what both ends allow is a fault.
  const int width = number_of(folder + "/current_link_width", 0), widest = number_of(folder + "/max_link_width", 0);
  const int ports = number_of(folder + "/../max_link_width", widest);
  if (now > 0 && width > 0 && width < std::min(widest, ports)) {
    device.gbps_max = device.gbps;
    device.gbps = device.gbps * width / std::min(widest, ports);
  }
}

/// A device may be near to memory without CPUs: then the node with CPUs that is nearest to this memory counts.
int Walker::nearest_with_cpus(int numa) const {
  const std::string folder = sys_ + "/devices/system/node";
  std::vector<int> numbers = node_numbers(folder);
  std::ranges::sort(numbers);  // in the order of a row of distances
  const auto has_cpus = [this](int number) { return topology_.find(DeviceKind::numa, number) >= 0; };
  if (numa < 0 || has_cpus(numa) || !std::ranges::binary_search(numbers, numa)) return numa;
  std::istringstream row(line_of(fmt::format("{}/node{}/distance", folder, numa)));
  int nearest = numa, least = INT_MAX, distance = 0;
  for (std::size_t at = 0; at < numbers.size() && row >> distance; ++at)
    if (has_cpus(numbers[at]) && distance < least) {
      nearest = numbers[at];
      least = distance;
    }
  return nearest;
}

void Walker::name_nic(Device& device, const std::string& folder) {
  for (const char* kind : {"/infiniband", "/net"})
    for (const std::string& called : names_in(folder + kind)) {
      if (device.kind == DeviceKind::nic && device.name != device.bus_id) return;
      device.kind = DeviceKind::nic;
      device.name = called;
      const int mbps = number_of(folder + kind + "/" + called + "/speed", 0);
      if (mbps > 0) device.network_gbps = mbps / 8000.0;
      const std::string rate = line_of(folder + kind + "/" + called + "/ports/1/rate");  // "200 Gb/sec (4X HDR)"
      int gbits = 0;
      std::from_chars(rate.data(), rate.data() + rate.size(), gbits);
      if (gbits > 0) device.network_gbps = gbits / 8.0;
    }
}

/// The device that a folder is of, without its kind and what is around it.
Device device_at(const std::string& folder, const std::string& bus_id) {
  return {.name = bus_id,
          .bus_id = bus_id,
          .pci_class = hex_of(line_of(folder + "/class")).value_or(0),
          .vendor = hex_of(line_of(folder + "/vendor")).value_or(0),
          .product = hex_of(line_of(folder + "/device")).value_or(0),
          .source = "sysfs"};
}

int Walker::bridge(const std::string& folder, const std::string& bus_id, int parent) {
  const auto [at, is_new] = made_.try_emplace(folder, -1);
  if (!is_new) return at->second;
  Device device = device_at(folder, bus_id);
  device.kind = DeviceKind::bridge;
  device.parent = parent;
  rate(device, folder);
  return at->second = topology_.add(device);
}

/// A path …/pci0000:16/0000:16:02.0/0000:17:00.0/0000:18:00.0/0000:19:00.0 names a root port, then two ends of a
/// switch, then the device. Upwards from the device, every second entry is a switch; the others are ports.
int Walker::parent_of(const std::string& real, int numa) {
  std::vector<std::pair<std::string, std::string>> above;  // folder and address, the nearest first
  std::string folder = real.substr(0, real.rfind('/'));
  while (above.size() < 64) {
    const std::string last = folder.substr(folder.rfind('/') + 1);
    const auto bus_id = bus_id_of(last);
    if (!bus_id || !last.ends_with(bus_id->substr(bus_id->size() - 4))) break;
    above.emplace_back(folder, *bus_id);
    folder = folder.substr(0, folder.rfind('/'));
  }
  const auto [at, is_new] = made_.try_emplace(folder, -1);
  if (is_new)
    at->second = topology_.add({.kind = DeviceKind::host_bridge,
                                .name = "root " + folder.substr(folder.rfind('/') + 1),
                                .parent = home(numa),
                                .source = "sysfs"});
  int parent = at->second;
  for (std::size_t nth = above.size() / 2; nth-- > 0;) {
    const auto& [where, bus_id] = above[2 * nth + 1];
    parent = bridge(where, bus_id, parent);
  }
  return parent;
}

/// Virtual functions are for virtual machines if their device is there itself: those of a GPU are not GPUs here, and
/// those of a NIC are NICs only while the system drives them.
bool Walker::is_usable(const Device& device, const std::string& folder) const {
  if (::access((folder + "/physfn").c_str(), F_OK) != 0) return true;
  return device.kind == DeviceKind::nic && device.name != device.bus_id;
}

/// Devices that switches isolate from each other (ACS) have their own groups, "…/kernel/iommu_groups/27".
void Walker::isolation(Device& device, const std::string& group) const {
  const std::string real = real_path(group);
  const std::string number = real.substr(real.rfind('/') + 1);
  std::from_chars(number.data(), number.data() + number.size(), device.iommu_group);
  device.iommu_translates = line_of(group + "/type").starts_with("DMA");
}

void Walker::functions() {
  const std::string folder = sys_ + "/bus/pci/devices";
  int dangling = 0;
  for (const std::string& entry : names_in(folder)) {
    const auto bus_id = bus_id_of(entry);
    const std::string real = real_path(folder + "/" + entry);
    dangling += real.empty() ? 1 : 0;
    if (!bus_id || real.empty() || topology_.devices.size() > devices_max) continue;
    const auto name_virtio = [&](Device& device) {  // its net device is one folder deeper
      for (const std::string& inside : names_in(real))
        if (inside.starts_with("virtio")) name_nic(device, real + "/" + inside);
    };
    Device device = device_at(real, *bus_id);
    device.kind = kind_of(device.pci_class, device.vendor, device.product);
    name_nic(device, real);
    if (device.kind == DeviceKind::function) name_virtio(device);
    if (device.kind != DeviceKind::gpu && device.kind != DeviceKind::nic && device.kind != DeviceKind::nvswitch)
      continue;
    if (!is_usable(device, real)) continue;
    if (device.kind == DeviceKind::gpu) device.name.clear();
    if (device.kind == DeviceKind::nic && device.name == *bus_id) name_virtio(device);
    device.numa = nearest_with_cpus(number_of(real + "/numa_node", -1));
    rate(device, real);
    if (device.kind == DeviceKind::gpu) isolation(device, real + "/iommu_group");
    device.parent = parent_of(real, device.numa);
    topology_.add(device);
  }
  if (dangling > 0)
    topology_.notes.push_back(fmt::format("{} entries of {} lead nowhere: those devices are hidden", dangling, folder));
}

void Walker::walk() {
  if (topology_.of_kind(DeviceKind::numa).empty()) nodes();
  makers();
  if (::access(sys_.c_str(), F_OK) != 0)
    topology_.notes.push_back(fmt::format("{} is not there: no GPU, NIC or NUMA node can be found", sys_));
  else if (::access((sys_ + "/bus/pci/devices").c_str(), R_OK) != 0)
    topology_.notes.push_back(fmt::format("{}/bus/pci cannot be read: no GPU or NIC can be found there", sys_));
  functions();
  topology_.nvlink_known = topology_.gpus().empty();
}

}  // namespace

void add_sysfs(Topology& topology, const std::string& root) {
  Walker(topology, root).walk();
}

}  // namespace tutti::topology
