#include "topology/sources/nccl_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "topology/graph/cpus.h"
#include "topology/graph/pci.h"
#include "topology/graph/rates.h"
#include "topology/sources/fabric.h"
#include "topology/sources/xml.h"

namespace tutti::topology {
namespace {

/// A row about links, kept until all devices are known.
struct Row {
  int gpu = 0;
  LinkKind kind = LinkKind::nvlink;
  std::string target;
  std::uint32_t target_class = 0;
  int count = 0;
  double gbps = 0;  // only for memory
};

class Reader {
 public:
  explicit Reader(Xml& xml) : xml_(xml) {}
  Result<Topology> read();

 private:
  void cpu(const pugi::xml_node& node);
  void child(const pugi::xml_node& node, int parent, int depth = 0);
  void pci(const pugi::xml_node& node, int parent, int depth);
  void gpu(const pugi::xml_node& node, Device device, int parts);
  void nic(const pugi::xml_node& node, Device device);
  void net(const pugi::xml_node& node, Device device);
  void link(const pugi::xml_node& node, int gpu);
  void resolve(const Row& row);
  int switch_at(const std::string& bus_id);
  int add(const pugi::xml_node& node, Device device);

  Xml& xml_;
  Topology topology_;
  std::vector<Row> rows_;
  bool unasked_ = false;                                // a GPU is only a function: no driver was asked about it
  std::set<std::pair<std::string, std::string>> seen_;  // bus id and partition
};

Result<Topology> Reader::read() {
  const pugi::xml_node root = xml_.root();
  const std::string_view what = root.name();
  if (what == "system")
    for (const pugi::xml_node& node : elements(root)) {
      if (std::string_view(node.name()) == "cpu")
        cpu(node);
      else
        child(node, -1);
    }
  else if (what == "cpu")
    cpu(root);
  else if (what == "pci")
    pci(root, -1, 0);
  else
    xml_.refuse(root, fmt::format("<{}> is not a <system>, <cpu> or <pci>", what.substr(0, 40)));
  if (!xml_.failed() && topology_.devices.empty()) xml_.refuse(root, "there is no device in it");
  if (xml_.failed()) return xml_.error();
  for (const Row& row : rows_) resolve(row);
  normalise(topology_);
  find_switches(topology_);
  if (unasked_)
    mark_links_unknown(topology_, "the file has GPUs without <gpu>, where their links would be");
  else if (xml_.text(root, "nvlinks") == "unknown")
    mark_links_unknown(topology_, "the file says so");
  return std::move(topology_);
}

int Reader::add(const pugi::xml_node& node, Device device) {
  if (topology_.devices.size() >= devices_max) {
    xml_.refuse(node, fmt::format("there are more than {} devices", devices_max));
    return 0;
  }
  return topology_.add(std::move(device));
}

void Reader::cpu(const pugi::xml_node& node) {
  const int count = static_cast<int>(topology_.of_kind(DeviceKind::numa).size());
  const int number = xml_.number_or(-1, node, "numaid", -1, 65535);
  Device device{.kind = DeviceKind::numa, .index = number < 0 ? count : number, .source = "file"};
  device.name = fmt::format("NUMA{}", device.index);
  device.numa = device.index;
  const std::string affinity = xml_.text(node, "affinity");
  device.cpus = cpu_list_of_mask(affinity);
  // Memory alone, which no rank is near to; an empty mask says that the CPUs are not known.
  if (!affinity.empty() && affinity.find_first_not_of("0x,") == std::string::npos && elements(node).empty()) return;
  device.maker = maker_of(xml_.text(node, "vendor"), xml_.text(node, "arch"));
  device.model = xml_.number_or(0, node, "modelid", -1, 1 << 20);
  const int id = add(node, std::move(device));
  for (const pugi::xml_node& inside : elements(node)) child(inside, id);
}

void Reader::child(const pugi::xml_node& node, int parent, int depth) {
  if (xml_.failed()) return;
  if (std::string_view(node.name()) == "pci") pci(node, parent, depth);
  if (std::string_view(node.name()) == "nic") nic(node, {.parent = parent});
}

void Reader::pci(const pugi::xml_node& node, int parent, int depth) {
  if (depth > depth_max) return xml_.refuse(node, fmt::format("<pci> is more than {} deep", depth_max));
  const std::string spelled = xml_.text(node, "busid");
  const auto bus_id = bus_id_of(spelled);
  if (!bus_id) return xml_.refuse(node, fmt::format("<pci>: busid \"{}\" is not a PCI address", spelled.substr(0, 40)));
  Device device{.name = *bus_id, .bus_id = *bus_id, .parent = parent, .source = "file"};
  device.pci_class = xml_.hex_or_zero(node, "class") & 0xffffff;  // PCI classes have 24 bits
  device.vendor = xml_.hex_or_zero(node, "vendor");
  device.product = xml_.hex_or_zero(node, "device");
  // For an unknown width the kernel reports 255, others -1.
  const int said = xml_.number_or(0, node, "link_width", -1, 255);
  const int width = said < 0 || said > 64 ? 0 : said;
  if (node.attribute("link_speed") || node.attribute("link_width"))
    device.gbps = pci_gbps(xml_.text(node, "link_speed"), width);
  const auto inside = elements(node);
  const auto has = [&](std::string_view name) {
    return static_cast<int>(std::ranges::count_if(inside, [&](const auto& n) { return name == n.name(); }));
  };
  const int gpus = has("gpu"), nics = has("nic"), functions = has("pci");
  device.kind = kind_of(device.pci_class, device.vendor, device.product);
  if (functions > 0) device.kind = DeviceKind::bridge;
  // The devices named below represent the function itself.
  if (gpus > 0 || nics > 0) {
    if (functions > 0) device.parent = add(node, device);
    for (const pugi::xml_node& child : inside) {
      if (std::string_view(child.name()) == "gpu") gpu(child, device, gpus);
      if (std::string_view(child.name()) == "nic") nic(child, device);
      if (std::string_view(child.name()) == "pci") pci(child, device.parent, depth + 1);
      if (xml_.failed()) return;
    }
    return;
  }
  if (!seen_.insert({*bus_id, ""}).second) return xml_.refuse(node, fmt::format("there are two <pci> at {}", *bus_id));
  if (device.kind == DeviceKind::gpu) {
    device.name.clear();  // numbered when all are known
    unasked_ = true;
  }
  const int id = add(node, device);
  for (const pugi::xml_node& function : inside) child(function, id, depth + 1);
}

/// `device`: the function that it is.
void Reader::gpu(const pugi::xml_node& node, Device device, int parts) {
  device.kind = DeviceKind::gpu;
  device.name.clear();
  device.index = xml_.number_or(-1, node, "dev", -1, 65535);
  if (parts > 1 || node.attribute("mlopart")) {
    device.partition = xml_.text(node, "mlopart");
    if (device.partition.empty()) device.partition = std::to_string(std::max(device.index, 0));
  }
  if (!seen_.insert({device.bus_id, device.partition}).second)
    return xml_.refuse(node, fmt::format("there are two <gpu> at {}", device.bus_id));
  device.compute = xml_.number_or(0, node, "sm", 0, 9999);
  const std::string gcn = xml_.text(node, "gcn");  // "908", "90a", "gfx942:sramecc+"
  if (!gcn.empty()) {
    std::string digits;
    for (const char c : gcn.starts_with("gfx") ? gcn.substr(3) : gcn) {
      if (std::isxdigit(static_cast<unsigned char>(c)) == 0) break;
      digits += c;
    }
    device.compute = digits == "90a" ? 910 : std::atoi(digits.substr(0, 4).c_str());
    if (device.vendor == 0) device.vendor = 0x1002;
  }
  const int id = add(node, device);
  for (const pugi::xml_node& child : elements(node)) link(child, id);
}

void Reader::link(const pugi::xml_node& node, int gpu) {
  Row row{.gpu = gpu};
  const std::string_view what = node.name();
  row.count = xml_.number_or(1, node, "count", 0, 1024);
  if (what == "c2c") {
    row.kind = LinkKind::memory;
    row.gbps = xml_.number_or(0, node, "bw", 0, 100'000'000) / 1000.0;  // in MB/s
  } else if (what == "nvlink" || what == "xgmi") {
    row.kind = what == "nvlink" ? LinkKind::nvlink : LinkKind::xgmi;
    row.target = xml_.text(node, "target");
    row.target_class = xml_.hex_or_zero(node, "tclass");
  } else {
    return;
  }
  if (rows_.size() >= devices_max) return xml_.refuse(node, fmt::format("there are more than {} links", devices_max));
  rows_.push_back(row);
}

void Reader::nic(const pugi::xml_node& node, Device device) {
  device.kind = DeviceKind::nic;
  const auto nets = elements(node);
  for (const pugi::xml_node& child : nets)
    if (std::string_view(child.name()) == "net") net(child, device);
  if (nets.empty() && !device.bus_id.empty()) add(node, std::move(device));
}

void Reader::net(const pugi::xml_node& node, Device device) {
  device.name = xml_.text(node, "name");
  device.source = "file";
  if (device.name.empty()) device.name = device.bus_id;
  const int mbits = xml_.number_or(0, node, "speed", -1, 1'000'000'000);  // -1: a link that is down
  device.network_gbps = std::max(mbits, 0) / 8000.0;
  for (const int other : topology_.nics())
    if (topology_[other].name == device.name && topology_[other].bus_id == device.bus_id) {
      // An interface listed by both CPUs is one interface, near both.
      if (topology_[other].parent != device.parent) topology_[other].anywhere = true;
      return;
    }
  add(node, std::move(device));
}

int Reader::switch_at(const std::string& bus_id) {
  for (const int id : topology_.of_kind(DeviceKind::nvswitch))
    if (topology_[id].bus_id == bus_id) return id;
  const int number = static_cast<int>(topology_.of_kind(DeviceKind::nvswitch).size());
  return topology_.add(
      {.kind = DeviceKind::nvswitch, .name = fmt::format("NVS{}", number), .bus_id = bus_id, .source = "file"});
}

void Reader::resolve(const Row& row) {
  const Device gpu = topology_[row.gpu];
  Link link{.from = row.gpu, .kind = row.kind, .count = row.count, .gbps = row.gbps, .source = "file"};
  if (row.count == 0) return;
  if (row.kind == LinkKind::nvlink) link.gbps = rates::nvlink(gpu.compute);
  if (row.kind == LinkKind::xgmi) link.gbps = rates::xgmi(gpu.compute);
  const int numa = topology_.above(row.gpu, DeviceKind::numa);
  if (row.kind == LinkKind::memory || row.target_class >> 8 == 0x0604) {
    link.kind = LinkKind::memory;  // POWER: NVLinks to the CPU
    link.to = numa;
    if (numa < 0) return;
    topology_.links.push_back(link);
    std::swap(link.from, link.to);
    topology_.links.push_back(link);
    return;
  }
  // fffffff:ffff:ff and fffffff:ff:ff.0 stand for a switch that this machine cannot see.
  const bool hidden = row.target.starts_with("fffffff:") || row.target.empty();
  const auto target = bus_id_of(row.target);
  link.to = hidden || !target ? -1 : topology_.find_bus(*target);
  if (link.to == row.gpu) {
    topology_.notes.push_back(fmt::format("{} has an NVLink to itself, left out", gpu.bus_id));
    return;
  }
  const std::uint32_t subclass = row.target_class >> 8;
  if (link.to < 0 && !hidden &&
      (subclass == 0x0302 || subclass == 0x0300 || subclass == 0x0380 || subclass == 0x1200)) {
    topology_.notes.push_back(fmt::format("{} has links to {}, which is not in the file", gpu.bus_id, row.target));
    return;
  }
  if (link.to < 0 || topology_[link.to].kind != DeviceKind::gpu)
    link.to = switch_at(hidden || !target ? std::string() : *target);
  for (const int part : topology_.parts_of(link.to)) {  // the address is all that identifies its end
    link.to = part;
    if (topology_[part].bus_id != gpu.bus_id || gpu.bus_id.empty()) topology_.links.push_back(link);
  }
}

}  // namespace

Result<Topology> read_nccl(std::string_view text) {
  auto xml = TUTTI_TRY(Xml::parse(text));
  return Reader(*xml).read();
}

}  // namespace tutti::topology
