// Writes the machine in the format of hwloc 2.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/file.h"
#include "base/markup.h"
#include "base/printable.h"
#include "topology/graph/cpus.h"
#include "topology/graph/pci.h"
#include "topology/sources/nccl_xml.h"
#include "topology/sources/write.h"

namespace tutti::topology {
namespace {

/// What has CPUs.
bool is_home(DeviceKind kind) {
  return kind == DeviceKind::package || kind == DeviceKind::numa;
}

/// "0x00000003,0x00000000"
std::string mask_of(const std::vector<int>& numbers) {
  std::string mask = "0x" + mask_of_cpus(numbers);
  for (std::size_t comma = mask.find(','); comma != std::string::npos; comma = mask.find(',', comma + 1))
    mask.insert(comma + 1, "0x");
  return mask;
}

class Writer {
 public:
  explicit Writer(const Topology& topology) : topology_(topology) { share_cpus(); }
  std::string write();

 private:
  struct Sets {
    std::vector<int> cpus = {}, nodes = {};
  };
  void share_cpus();
  Sets sets_of(int home) const;
  std::string sets(const Sets& sets);
  void home(int id, int depth);
  void node(int id, int depth);
  void devices_of(int home, int depth);
  void device(int id, int depth);
  void leaf(int id, int depth);
  void distances(LinkKind kind, std::string_view called, long long mbps_each);
  void about();
  std::vector<int> children(int id, bool homes) const;
  std::string bus_id(int id) const {
    // Everything needs an address: a device without one gets one in a domain that no machine has.
    return topology_[id].bus_id.empty() ? fmt::format("ffff:{:02x}:{:02x}.0", id >> 5 & 255, id & 31)
                                        : topology_[id].bus_id;
  }
  std::string port() {
    ++ports_;
    return fmt::format("fffe:{:02x}:{:02x}.0", ports_ >> 5 & 255, ports_ & 31);
  }
  template <class... Arguments>
  void line(int depth, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format("{:{}}", "", depth * 2);
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }
  void close(int depth) { line(depth, "</object>"); }

  const Topology& topology_;
  std::map<int, Sets> own_;    // of NUMA nodes, and of packages without any
  std::map<int, int> gp_of_;   // hwloc's number of a device: of its OS device if it has one
  std::map<int, bool> is_os_;  // whether this is an OS device
  int gp_ = 0, ports_ = 0;
  std::string text_;
};

std::vector<int> Writer::children(int id, bool homes) const {
  std::vector<int> found;
  for (std::size_t child = 0; child < topology_.devices.size(); ++child)
    if (topology_.devices[child].parent == id && is_home(topology_.devices[child].kind) == homes &&
        topology_.parts_of(static_cast<int>(child)).front() == static_cast<int>(child))
      found.push_back(static_cast<int>(child));
  // hwloc requires them in the order of their CPUs.
  if (homes && !own_.empty())
    std::ranges::stable_sort(found, {}, [&](int home) {
      const Sets sets = sets_of(home);
      return sets.cpus.empty() ? 0 : sets.cpus.front();
    });
  return found;
}

/// hwloc allows each CPU in one node or package only, and requires at least one in each.
void Writer::share_cpus() {
  std::set<int> taken, nodes;
  for (const Device& device : topology_.devices)
    if (is_home(device.kind))
      for (const int cpu : cpus_of_list(device.cpus)) taken.insert(cpu);
  int next = taken.empty() ? 0 : *taken.rbegin() + 1, next_node = 0;
  std::set<int> given;
  for (std::size_t at = 0; at < topology_.devices.size(); ++at) {
    const Device& device = topology_.devices[at];
    const int id = static_cast<int>(at);
    if (!is_home(device.kind) || !children(id, true).empty()) continue;
    Sets sets;
    for (const int cpu : cpus_of_list(device.cpus))
      if (given.insert(cpu).second) sets.cpus.push_back(cpu);
    if (sets.cpus.empty()) sets.cpus.push_back(next++ % static_cast<int>(cpus_max));
    int number = device.kind == DeviceKind::numa && device.index >= 0 && device.index < 4096 ? device.index : next_node;
    while (!nodes.insert(number).second) number = ++next_node;
    sets.nodes.push_back(number);
    own_[id] = std::move(sets);
  }
}

Writer::Sets Writer::sets_of(int home) const {
  if (const auto at = own_.find(home); at != own_.end()) return at->second;
  Sets all;
  for (const auto& [id, sets] : own_) {
    int up = id;
    while (up >= 0 && up != home) up = topology_[up].parent;
    if (up != home) continue;
    all.cpus.insert(all.cpus.end(), sets.cpus.begin(), sets.cpus.end());
    all.nodes.insert(all.nodes.end(), sets.nodes.begin(), sets.nodes.end());
  }
  std::ranges::sort(all.cpus);
  std::ranges::sort(all.nodes);
  return all;
}

std::string Writer::sets(const Sets& sets) {
  const std::string cpus = mask_of(sets.cpus), nodes = mask_of(sets.nodes);
  return fmt::format("cpuset=\"{0}\" complete_cpuset=\"{0}\" nodeset=\"{1}\" complete_nodeset=\"{1}\" gp_index=\"{2}\"",
                     cpus, nodes, ++gp_);
}

void Writer::node(int id, int depth) {
  const Sets& own = own_.at(id);
  line(depth, "<object type=\"NUMANode\" os_index=\"{}\" {} local_memory=\"0\"/>", own.nodes.front(), sets(own));
  for (const int cpu : own.cpus) line(depth, "<object type=\"PU\" os_index=\"{}\" {}/>", cpu, sets({{cpu}, own.nodes}));
}

/// Writes a package or NUMA node with everything inside it.
void Writer::home(int id, int depth) {
  const Device& device = topology_[id];
  const std::vector<int> inside = children(id, true);
  if (device.kind == DeviceKind::package) {
    line(depth, "<object type=\"Package\" os_index=\"{}\" {}>", std::max(device.index, 0), sets(sets_of(id)));
  } else {
    line(depth, "<object type=\"Group\" {} kind=\"0\" subkind=\"0\">", sets(sets_of(id)));
  }
  if (inside.empty()) node(id, depth + 1);
  for (const int child : inside) {
    if (inside.size() > 1) {
      home(child, depth + 1);
    } else {
      node(child, depth + 1);
      devices_of(child, depth + 1);
    }
  }
  devices_of(id, depth + 1);
  close(depth);
}

/// Writes host bridges, and one more for devices directly below it.
void Writer::devices_of(int home, int depth) {
  const auto root = [&](const std::vector<int>& inside) {
    line(depth, "<object type=\"Bridge\" gp_index=\"{}\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[00-ff]\">",
         ++gp_);
    for (const int id : inside) device(id, depth + 1);
    close(depth);
  };
  std::vector<int> others;
  for (const int id : children(home, false)) {
    if (topology_[id].kind == DeviceKind::host_bridge)
      root(children(id, false));
    else
      others.push_back(id);
  }
  if (!others.empty()) root(others);
}

/// For hwloc, a switch is an upstream and a downstream port, and is below a port itself.
void Writer::device(int id, int depth) {
  const Device& device = topology_[id];
  if (device.kind != DeviceKind::bridge) return leaf(id, depth);
  const std::string rate =
      device.gbps > 0 ? fmt::format(" pci_link_speed=\"{:.6f}\"", device.gbps * 15.753846 / 12) : std::string();
  const auto open = [&](int at, const std::string& address) {
    line(at,
         "<object type=\"Bridge\" gp_index=\"{}\" bridge_type=\"1-1\" depth=\"{}\" bridge_pci=\"0000:[00-ff]\" "
         "pci_busid=\"{}\" pci_type=\"0604 [{:04x}:{:04x}] [0000:0000] 00\"{}>",
         ++gp_, at - depth + 1, address, device.vendor & 0xffff, device.product & 0xffff, rate);
  };
  open(depth, port());
  open(depth + 1, bus_id(id));
  for (const int child : children(id, false)) {
    if (topology_[child].kind == DeviceKind::bridge) {
      this->device(child, depth + 2);
      continue;
    }
    open(depth + 2, port());
    leaf(child, depth + 3);
    close(depth + 2);
  }
  close(depth + 1);
  close(depth);
}

void Writer::leaf(int id, int depth) {
  const Device& device = topology_[id];
  const bool gpu = device.kind == DeviceKind::gpu, nic = device.kind == DeviceKind::nic;
  const bool amd = device.vendor == 0x1002;
  // A NIC at a function of a different class would be read as that class.
  const bool known =
      device.pci_class != 0 && (!nic || kind_of(device.pci_class, device.vendor, device.product) == DeviceKind::nic);
  const std::uint32_t pci_class = known                                 ? device.pci_class >> 8
                                  : gpu                                 ? 0x0302
                                  : nic                                 ? 0x0200
                                  : device.kind == DeviceKind::nvswitch ? 0x0680
                                                                        : 0;
  const std::uint32_t vendor = device.vendor != 0 || nic ? device.vendor : 0x10de;
  gp_of_[id] = ++gp_;
  line(depth,
       "<object type=\"PCIDev\" gp_index=\"{}\" pci_busid=\"{}\" pci_type=\"{:04x} [{:04x}:{:04x}] [0000:0000] 00\" "
       "pci_link_speed=\"{:.6f}\">",
       gp_, bus_id(id), pci_class & 0xffff, vendor & 0xffff, device.product & 0xffff, device.gbps * 15.753846 / 12);
  for (const int part : gpu ? topology_.parts_of(id) : std::vector<int>()) {
    gp_of_[part] = ++gp_;
    is_os_[part] = true;
    line(depth + 1, "<object type=\"OSDev\" gp_index=\"{}\" name=\"{}{}\" subtype=\"{}\" osdev_type=\"1\"/>", gp_,
         amd ? "rsmi" : "nvml", topology_[part].index, amd ? "RSMI" : "NVML");
  }
  if (nic) {
    const bool verbs = device.pci_class >> 8 == 0x0207 || device.name.find('_') != std::string::npos;
    line(depth + 1, "<object type=\"OSDev\" gp_index=\"{}\" name=\"{}\" osdev_type=\"{}\"/>", ++gp_,
         escaped(device.name), verbs ? 3 : 2);
  }
  close(depth);
}

void Writer::distances(LinkKind kind, std::string_view called, long long mbps_each) {
  std::map<std::pair<int, int>, long long> mbps;
  std::set<int> ends;
  for (const Link& link : topology_.links) {
    if (link.kind != kind || !gp_of_.contains(link.from) || !gp_of_.contains(link.to)) continue;
    const bool blackwell = kind == LinkKind::nvlink && link.gbps > 30;
    mbps[{link.from, link.to}] += link.count * (blackwell ? 50000 : mbps_each);
    ends.insert(link.from);
    ends.insert(link.to);
  }
  if (ends.size() < 2) return;
  std::vector<std::string> indexes, values;
  const bool mixed = std::ranges::any_of(ends, [&](int id) { return !is_os_[id]; });
  for (const int from : ends) {
    indexes.push_back(fmt::format("{}{}", !mixed ? "" : is_os_[from] ? "OSDev:" : "PCIDev:", gp_of_[from]));
    for (const int to : ends) {
      const auto there = mbps.find({from, to});
      const auto back = mbps.find({to, from});  // the rate of a switch's link is taken from the GPUs
      values.push_back(std::to_string(from == to            ? 1000000
                                      : there != mbps.end() ? there->second
                                      : back != mbps.end()  ? back->second
                                                            : 0));
    }
  }
  line(1, "<distances2{} {}nbobjs=\"{}\" kind=\"{}\" name=\"{}\" indexing=\"gp\">", mixed ? "hetero" : "",
       mixed ? "" : "type=\"OSDev\" ", ends.size(), mixed ? 25 : 9, called);
  const auto list = [&](std::string_view tag, const std::vector<std::string>& words) {
    std::string text = fmt::format("{} ", joined(words, " "));
    line(2, "<{0} length=\"{1}\">{2}</{0}>", tag, text.size(), text);
  };
  list("indexes", indexes);
  list("u64values", values);
  line(1, "</distances2{}>", mixed ? "hetero" : "");
}

void Writer::about() {
  const std::vector<int> nodes = topology_.of_kind(DeviceKind::numa);
  const CpuMaker maker = nodes.empty() ? CpuMaker::unknown : topology_[nodes.front()].maker;
  const char* const vendor = maker == CpuMaker::intel     ? "GenuineIntel"
                             : maker == CpuMaker::amd     ? "AuthenticAMD"
                             : maker == CpuMaker::zhaoxin ? "CentaurHauls"
                                                          : nullptr;
  const char* const arch = maker == CpuMaker::arm ? "aarch64" : maker == CpuMaker::power ? "ppc64le" : nullptr;
  if (vendor) line(2, "<info name=\"CPUVendor\" value=\"{}\"/>", vendor);
  if (vendor) line(2, "<info name=\"CPUModelNumber\" value=\"{}\"/>", topology_[nodes.front()].model);
  if (arch) line(2, "<info name=\"Architecture\" value=\"{}\"/>", arch);
}

std::string Writer::write() {
  text_ =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
      "<topology version=\"2.0\">\n";
  Sets all = sets_of(-1);
  const bool nowhere = all.cpus.empty();
  if (nowhere) all = {{0}, {0}};
  const std::string allowed =
      fmt::format(" allowed_cpuset=\"{}\" allowed_nodeset=\"{}\"", mask_of(all.cpus), mask_of(all.nodes));
  line(1, "<object type=\"Machine\" os_index=\"0\" {}{}>", sets(all), allowed);
  about();
  if (nowhere) {
    line(2, "<object type=\"NUMANode\" os_index=\"0\" {} local_memory=\"0\"/>", sets(all));
    line(2, "<object type=\"PU\" os_index=\"0\" {}/>", sets(all));
  }
  for (const int id : children(-1, true)) home(id, 2);
  devices_of(-1, 2);
  close(1);
  distances(LinkKind::nvlink, "NVLinkBandwidth", 25000);
  distances(LinkKind::xgmi, "XGMIBandwidth", 50000);
  text_ += "</topology>\n";
  return std::move(text_);
}

}  // namespace

std::string write_hwloc(const Topology& topology) {
  return Writer(topology).write();
}

Result<void> write_machine(const std::string& path, const Topology& topology, FileKind kind) {
  return write_file(path, path.ends_with(".hwloc.xml") ? write_hwloc(topology) : write_nccl(topology), kind);
}

}  // namespace tutti::topology
