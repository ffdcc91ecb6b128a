// Reads machines exported by hwloc.
#include <fmt/format.h>
#include <cmath>

#include <algorithm>
#include <charconv>
#include <map>

#include "topology/graph/cpus.h"
#include "topology/graph/pci.h"
#include "topology/graph/rates.h"
#include "topology/sources/fabric.h"
#include "topology/sources/memory_nodes.h"
#include "topology/sources/read.h"
#include "topology/sources/xml.h"

namespace tutti::topology {
namespace {

constexpr std::size_t ends_max = 1024;  // of a distance matrix

class Reader {
 public:
  explicit Reader(Xml& xml) : xml_(xml) {}
  Result<Topology> read();

 private:
  /// What is known about the objects above an object.
  struct Ancestors {
    int package = -1;
    int numa = -1;
    int depth = 0;
    std::vector<int> bridges = {};  // PCI bridges above, the nearest last; the first is the host bridge
    int function = -1;              // the PCI function around it
  };
  void object(const pugi::xml_node& node, Ancestors around);
  void beside(const pugi::xml_node& node, Ancestors& around);
  void numa(const pugi::xml_node& node, Ancestors& around);
  void bridge(const pugi::xml_node& node, Ancestors& around);
  void function(const pugi::xml_node& node, Ancestors& around);
  int os_type(const pugi::xml_node& node);
  int system_device(const pugi::xml_node& node, const Ancestors& around);
  int part(int function, int number);
  void distances(const pugi::xml_node& node);
  void connect(const std::vector<int>& ends, const std::vector<long long>& values, LinkKind kind);
  int links_in(int from, int to, long long mbps, LinkKind kind, double& gbps) const;
  int at(const Ancestors& around) const { return around.numa >= 0 ? around.numa : around.package; }
  bool full(const pugi::xml_node& node);
  void about(const pugi::xml_node& node);
  void drop_useless();

  Xml& xml_;
  Topology topology_;
  std::map<long long, int> by_gp_;  // by hwloc's own numbers
  MemoryNodes nodes_;
  std::map<int, int> parts_;   // of functions that are divided: parts after the first
  int version_ = 0;            // of the format; 0: not said, 1
  std::string vendor_, arch_;  // of the CPUs
  int model_ = 0;
};

/// Parses attributes like pci_type="0302 [10de:2330] [10de:16c0] a1".
void set_type(Device& device, std::string_view text) {
  if (text.size() < 16) return;
  device.pci_class = hex_of(text.substr(0, 4)).value_or(0) << 8;
  device.vendor = hex_of(text.substr(6, 4)).value_or(0);
  device.product = hex_of(text.substr(11, 4)).value_or(0);
  device.kind = kind_of(device.pci_class, device.vendor, device.product);
}

/// hwloc reports the raw rate, the other sources the rate left for data.
double pci_data_gbps(const pugi::xml_node& node) {
  const double wire = node.attribute("pci_link_speed").as_double();
  if (!(wire > 0 && wire < 10000)) return 0;
  return std::round(wire * 12 / 15.753846 * 100) / 100;
}

bool is_memory(const pugi::xml_node& node) {
  return std::string_view(node.attribute("type").value()) == "NUMANode" && !node.child("object");
}

/// Memory, or a cache in front of it: neither has CPUs inside.
bool is_beside(const pugi::xml_node& node) {
  return is_memory(node) || std::string_view(node.attribute("type").value()) == "MemCache";
}

/// Whether a NUMA node is of memory that comes beside a CPU's own: HBM, CXL, a GPU's.
bool is_special(const pugi::xml_node& node) {
  const std::string_view kind = node.attribute("subtype").value();
  return !kind.empty() && kind != "DRAM";
}

Result<Topology> Reader::read() {
  const pugi::xml_node root = xml_.root();
  if (std::string_view(root.name()) != "topology") xml_.refuse(root, "the file is not a <topology>");
  const std::string version = xml_.text(root, "version");
  std::from_chars(version.data(), version.data() + version.size(), version_);
  if (!version.empty() && (version_ < 1 || version_ > 3))
    xml_.refuse(root, fmt::format("the format is hwloc {}; 1, 2 and 3 can be read", version.substr(0, 20)));
  about(root);
  for (const pugi::xml_node& node : elements(root))
    if (!xml_.failed() && std::string_view(node.name()) == "object") object(node, {});
  if (!xml_.failed() && topology_.devices.empty()) xml_.refuse(root, "there is no package, NUMA node or device in it");
  for (const pugi::xml_node& node : elements(root))
    if (!xml_.failed() && std::string_view(node.name()).starts_with("distances")) distances(node);
  if (xml_.failed()) return xml_.error();
  for (const auto& [function, beside] : parts_)
    topology_.notes.push_back(
        fmt::format("{} is divided into {} GPUs, which share its links", topology_[function].bus_id, beside + 1));
  for (const int id : topology_.of_kind(DeviceKind::numa)) {
    topology_[id].maker = maker_of(vendor_, arch_);
    topology_[id].model = model_;
  }
  nodes_.leave_out_memory_alone(topology_);
  drop_useless();
  normalise(topology_);
  find_switches(topology_);
  topology_.nvlink_known = !topology_.links.empty();
  if (!topology_.nvlink_known) mark_links_unknown(topology_, "the file has neither NVLinkBandwidth nor XGMIBandwidth");
  return std::move(topology_);
}

bool Reader::full(const pugi::xml_node& node) {
  if (topology_.devices.size() >= devices_max)
    xml_.refuse(node, fmt::format("there are more than {} devices", devices_max));
  return xml_.failed();
}

/// hwloc's information about the CPUs: <info name="CPUVendor" value="GenuineIntel"/>.
void Reader::about(const pugi::xml_node& node) {
  for (const pugi::xml_node& info : node.children("info")) {
    const std::string_view called = info.attribute("name").value();
    if (called == "CPUVendor") vendor_ = xml_.text(info, "value");
    if (called == "Architecture") arch_ = xml_.text(info, "value");
    if (called == "CPUModelNumber") model_ = info.attribute("value").as_int();
  }
}

void Reader::object(const pugi::xml_node& node, Ancestors around) {
  if (xml_.failed() || full(node)) return;
  if (++around.depth > depth_max) return xml_.refuse(node, fmt::format("objects are more than {} deep", depth_max));
  const std::string_view type = node.attribute("type").value();
  about(node);
  if (type == "Package" || type == "Socket") {
    const int number = xml_.number_or(0, node, "os_index", -1, 1 << 30);
    around.package = topology_.add({.kind = DeviceKind::package,
                                    .name = fmt::format("CPU{}", number),
                                    .index = number,
                                    .cpus = cpu_list_of_mask(node.attribute("cpuset").value()),
                                    .source = "hwloc"});
  }
  // hwloc 1: a NUMA node is above the objects near it. hwloc 2: it is beside them, with nothing inside.
  if (type == "NUMANode") numa(node, around);
  beside(node, around);
  if (type == "Bridge") bridge(node, around);
  if (type == "PCIDev") function(node, around);
  if (type == "OSDev") around.function = system_device(node, around);
  if (const auto gp = xml_.number(node, "gp_index", 0, 1ll << 60))
    by_gp_[*gp] = around.function >= 0 ? around.function : around.package;
  for (const pugi::xml_node& child : elements(node)) {
    if (std::string_view(child.name()) == "object" && !is_beside(child)) object(child, around);
  }
}

/// The memory beside the objects in `node`; several side by side are kinds of memory, of which one counts.
void Reader::beside(const pugi::xml_node& node, Ancestors& around) {
  const int above = around.numa;
  for (const pugi::xml_node& child : elements(node)) {
    Ancestors found = around;
    found.numa = above;
    if (std::string_view(child.name()) != "object" || !is_beside(child)) continue;
    if (is_memory(child))
      numa(child, found);
    else if (++found.depth > depth_max)
      return xml_.refuse(child, fmt::format("objects are more than {} deep", depth_max));
    else
      beside(child, found);
    if (found.numa != above && (around.numa == above || nodes_.nearer(topology_, found.numa, around.numa)))
      around.numa = found.numa;
  }
}

void Reader::numa(const pugi::xml_node& node, Ancestors& around) {
  const int number = xml_.number_or(0, node, "os_index", -1, 1 << 30);
  const std::string cpus = cpu_list_of_mask(node.attribute("cpuset").value());
  if (cpus.empty() || full(node)) return;  // memory of a GPU, or far memory: no device is near it
  around.numa = topology_.add({.kind = DeviceKind::numa,
                               .name = fmt::format("NUMA{}", number),
                               .parent = around.package,
                               .index = number,
                               .numa = number,
                               .cpus = cpus,
                               .source = "hwloc"});
  nodes_.add(topology_, around.numa, is_special(node));
}

void Reader::bridge(const pugi::xml_node& node, Ancestors& around) {
  const bool host = std::string_view(node.attribute("bridge_type").value()).starts_with("0-");
  Device device{.kind = host ? DeviceKind::host_bridge : DeviceKind::bridge, .source = "hwloc"};
  if (host) {
    around.bridges.clear();
    device.parent = at(around);
    device.name = fmt::format("root {}", xml_.text(node, "bridge_pci"));
  } else {
    const auto bus_id = bus_id_of(xml_.text(node, "pci_busid"));
    if (!bus_id) return xml_.refuse(node, "a PCI bridge without an address");
    device.bus_id = device.name = *bus_id;
    set_type(device, node.attribute("pci_type").value());
    device.kind = DeviceKind::bridge;
    device.gbps = pci_data_gbps(node);
    device.parent = around.bridges.empty() ? at(around) : around.bridges.back();
  }
  around.bridges.push_back(topology_.add(device));
}

void Reader::function(const pugi::xml_node& node, Ancestors& around) {
  const std::string spelled = xml_.text(node, "pci_busid");
  const auto bus_id = bus_id_of(spelled);
  if (!bus_id) return xml_.refuse(node, fmt::format("pci_busid \"{}\" is not a PCI address", spelled.substr(0, 40)));
  Device device{.bus_id = *bus_id, .source = "hwloc"};
  set_type(device, node.attribute("pci_type").value());
  if (device.kind != DeviceKind::gpu) device.name = *bus_id;
  device.gbps = pci_data_gbps(node);
  device.parent = around.bridges.empty() ? at(around) : around.bridges.back();
  around.function = topology_.add(device);
}

/// The number at the end of "nvml12" if the rest is `word`; otherwise -1.
int number_behind(std::string_view text, std::string_view word) {
  int number = -1;
  if (!text.starts_with(word)) return -1;
  text.remove_prefix(word.size());
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size() && number < 65536 ? number : -1;
}

/// One more GPU in a device that already has one: the device is divided, and all its parts have one address.
int Reader::part(int function, int number) {
  if (topology_[function].partition.empty()) topology_[function].partition = std::to_string(0);
  Device device = topology_[function];
  device.partition = std::to_string(++parts_[function]);
  device.index = number;
  return topology_.add(std::move(device));
}

/// The type of an OS device as in hwloc 1 and 2: 2 is a net device, 3 one of verbs. In hwloc 3 the types are bits.
int Reader::os_type(const pugi::xml_node& node) {
  constexpr int network = 1 << 4, verbs = 1 << 5;
  const int type = xml_.number_or(-1, node, "osdev_type", -1, 1 << 20);
  if (version_ < 3 || type < 0) return type;
  return (type & verbs) != 0 ? 3 : (type & network) != 0 ? 2 : 0;
}

/// The device that it belongs to: the function, or a part of it.
int Reader::system_device(const pugi::xml_node& node, const Ancestors& around) {
  if (around.function < 0) return -1;
  Device& device = topology_[around.function];
  const std::string called = xml_.text(node, "name");
  const int type = os_type(node);
  const bool network = type == 2 || type == 3;  // independent of its name
  for (const std::string_view word : {"nvml", "rsmi"})
    if (const int number = network ? -1 : number_behind(called, word); number >= 0) {
      if (device.index >= 0 && device.index != number)
        return full(node) ? around.function : part(around.function, number);
      device.kind = DeviceKind::gpu;
      device.index = number;
      device.name.clear();
    }
  if (type == 3 || (type == 2 && device.kind != DeviceKind::gpu)) {
    // The verbs device is the primary name, as it can be queried; the net device of the same function is the second.
    const bool first = device.kind != DeviceKind::nic || device.name == device.bus_id;
    device.kind = DeviceKind::nic;
    if (first || type == 3) device.name = called;
  }
  return around.function;
}

void Reader::distances(const pugi::xml_node& node) {
  const std::string_view called = node.attribute("name").value();
  if (called != "NVLinkBandwidth" && called != "XGMIBandwidth") return;
  const auto count = static_cast<std::size_t>(xml_.number_or(0, node, "nbobjs", 0, ends_max));
  std::vector<int> ends;
  std::vector<long long> values;
  for (const pugi::xml_node& child : elements(node)) {
    const bool is_index = std::string_view(child.name()) == "indexes";
    std::string_view text = child.child_value();
    while (!text.empty() && !xml_.failed()) {
      std::string_view word = text.substr(0, text.find_first_of(" \n\t"));
      text.remove_prefix(std::min(text.size(), word.size() + 1));
      if (word.empty()) continue;
      if (const std::size_t colon = word.find(':'); is_index && colon != std::string_view::npos)
        word.remove_prefix(colon + 1);
      long long value = 0;
      const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
      if (code != std::errc() || end != word.data() + word.size() || value < 0 || value > 1'000'000'000)
        xml_.refuse(child, fmt::format("\"{}\" is not a number of distances", word.substr(0, 40)));
      if (is_index) {
        const auto known = by_gp_.find(value);
        ends.push_back(known == by_gp_.end() ? -1 : known->second);
      } else {
        values.push_back(value);
      }
      if (ends.size() > count || values.size() > count * count)
        xml_.refuse(child, fmt::format("more distances than nbobjs {} says", count));
    }
  }
  if (!xml_.failed() && (ends.size() != count || values.size() != count * count))
    xml_.refuse(node, fmt::format("{} objects have {} indexes and {} values", count, ends.size(), values.size()));
  if (!xml_.failed()) connect(ends, values, called[0] == 'X' ? LinkKind::xgmi : LinkKind::nvlink);
}

/// How many links give `mbps`, and the rate of one.
int Reader::links_in(int from, int to, long long mbps, LinkKind kind, double& gbps) const {
  const Device& gpu = topology_[topology_[from].kind == DeviceKind::gpu ? from : to];
  if (kind == LinkKind::xgmi) {
    gbps = mbps >= 50000 ? 36 : 24;
    return static_cast<int>(std::max(1ll, mbps / 50000));
  }
  const bool blackwell = gpu.product >= 0x2900;
  const long long one = blackwell ? 50000 : mbps % 25000 != 0 && mbps % 20000 == 0 ? 20000 : 25000;
  const bool hopper = gpu.product >= 0x2300 && gpu.product < 0x2400;
  gbps = rates::nvlink(blackwell ? 100 : hopper ? 90 : one == 20000 ? 60 : 80);
  return static_cast<int>(std::max(1ll, mbps / one));
}

void Reader::connect(const std::vector<int>& ends, const std::vector<long long>& values, LinkKind kind) {
  for (const int end : ends)
    if (end >= 0 && topology_[end].kind == DeviceKind::function) topology_[end].kind = DeviceKind::nvswitch;
  for (std::size_t row = 0; row < ends.size(); ++row)
    for (std::size_t column = 0; column < ends.size(); ++column) {
      const int from = ends[row], to = ends[column];
      const long long mbps = values[row * ends.size() + column];
      if (from < 0 || to < 0 || from == to || mbps < 1000 || mbps >= 1'000'000) continue;
      Link link{.from = from, .to = to, .kind = kind, .source = "hwloc"};
      if (topology_[from].kind != DeviceKind::gpu && topology_[to].kind != DeviceKind::gpu) continue;
      // parts of one device
      if (topology_[from].bus_id == topology_[to].bus_id && !topology_[from].bus_id.empty()) continue;
      link.count = links_in(from, to, mbps, kind, link.gbps);
      if (topology_[from].kind == DeviceKind::package || topology_[to].kind == DeviceKind::package)
        link.kind = LinkKind::memory;
      topology_.links.push_back(link);
    }
}

/// For the system, a switch is two bridges and each of its ports is one. The port right above a device is removed, and
/// so on upwards, so that switches remain. Bridges without a relevant device below are removed too.
void Reader::drop_useless() {
  const auto is_bridge = [&](int id) { return id >= 0 && topology_[id].kind == DeviceKind::bridge; };
  std::vector<bool> keep(topology_.devices.size(), false);
  std::vector<int> was;
  for (const Device& device : topology_.devices) was.push_back(device.parent);
  const auto parent = [&](int id) { return was[static_cast<std::size_t>(id)]; };
  for (std::size_t id = 0; id < keep.size(); ++id) {
    const DeviceKind kind = topology_.devices[id].kind;
    if (kind == DeviceKind::package || kind == DeviceKind::numa) keep[id] = true;
    if (kind != DeviceKind::gpu && kind != DeviceKind::nic && kind != DeviceKind::nvswitch) continue;
    int below = static_cast<int>(id);
    keep[id] = true;
    while (true) {
      const int port = parent(below);
      if (!is_bridge(port)) {
        if (port >= 0) keep[static_cast<std::size_t>(port)] = true;
        break;
      }
      const int above = parent(port);  // the switch that the port belongs to, or the root
      topology_[below].parent = above;
      if (above < 0) break;
      keep[static_cast<std::size_t>(above)] = true;
      if (!is_bridge(above)) break;
      below = above;
    }
  }
  topology_ = subset(topology_, keep);
}

}  // namespace

Result<Topology> read_hwloc(std::string_view text) {
  auto xml = TUTTI_TRY(Xml::parse(text));
  return Reader(*xml).read();
}

}  // namespace tutti::topology
