// Writes the machine in NCCL's schema.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/markup.h"
#include "topology/graph/cpus.h"
#include "topology/graph/path.h"
#include "topology/graph/pci.h"
#include "topology/sources/nccl_xml.h"

namespace tutti::topology {
namespace {

class Writer {
 public:
  explicit Writer(const Topology& topology) : topology_(topology) {}
  std::string write();

 private:
  void cpu(int id);
  void below(int id, int depth, bool with_orphans);
  void function(int id, int depth);
  void gpu(int id, int depth);
  void net(int id, int depth);
  std::string bus_id(int id) const {
    // NCCL needs an address for everything: a device without one gets one in a domain that no machine has.
    return topology_[id].bus_id.empty() ? fmt::format("ffff:{:02x}:{:02x}.0", id >> 5 & 255, id & 31)
                                        : topology_[id].bus_id;
  }
  template <class... Arguments>
  void line(int depth, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format("{:{}}", "", depth * 2);
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }

  const Topology& topology_;
  std::string text_;
};

void Writer::gpu(int id, int depth) {
  const Device& device = topology_[id];
  const std::string part = device.partition.empty() ? "" : fmt::format(" mlopart=\"{}\"", escaped(device.partition));
  const bool amd = device.compute > 200;
  line(depth, "<gpu dev=\"{}\" sm=\"{}\"{} rank=\"{}\" gdr=\"1\"{}>", device.index, amd ? 0 : device.compute,
       amd ? fmt::format(" gcn=\"{}\"", device.compute) : "", device.index, part);
  for (const Link& link : topology_.links) {
    const DeviceKind to = topology_[link.to].kind;
    if (link.from != id || (to == DeviceKind::gpu && topology_.parts_of(link.to).front() != link.to)) continue;
    if (link.kind == LinkKind::memory) {
      line(depth + 1, "<c2c bw=\"{:.0f}\" count=\"{}\"/>", link.gbps * 1000, link.count);
      continue;
    }
    const bool to_switch = topology_[link.to].kind == DeviceKind::nvswitch;
    const bool unseen = to_switch && topology_[link.to].bus_id.empty();
    line(depth + 1, "<{} target=\"{}\" count=\"{}\" tclass=\"{}\"/>", name(link.kind),
         unseen ? "fffffff:ffff:ff" : bus_id(link.to), link.count,
         to_switch                 ? "0x068000"
         : device.vendor == 0x1002 ? "0x038000"
                                   : "0x030200");
  }
  line(depth, "</gpu>");
}

void Writer::net(int id, int depth) {
  const Device& device = topology_[id];
  line(depth, "<nic>");
  line(depth + 1, "<net name=\"{}\" dev=\"{}\" speed=\"{:.0f}\" port=\"1\" guid=\"{:#x}\" gdr=\"1\"/>",
       escaped(device.name), id, device.network_gbps * 8000, id + 1);
  line(depth, "</nic>");
}

void Writer::function(int id, int depth) {
  const Device& device = topology_[id];
  if (device.kind == DeviceKind::nvswitch || topology_.parts_of(id).front() != id) return;
  if (device.kind == DeviceKind::nic && device.bus_id.empty()) return net(id, depth);
  const std::uint32_t assumed = device.kind == DeviceKind::bridge ? 0x060400
                                : device.kind == DeviceKind::gpu  ? 0x030200
                                : device.kind == DeviceKind::nic  ? 0x020000
                                                                  : 0;
  std::string rate;
  if (device.gbps > 0) {  // any width and speed that give this rate
    const auto [speed, per_lane] = device.gbps > 24      ? std::pair("32.0 GT/s PCIe", 3.0)
                                   : device.gbps > 12    ? std::pair("16.0 GT/s PCIe", 1.5)
                                   : device.gbps >= 0.75 ? std::pair("8.0 GT/s PCIe", 0.75)
                                                         : std::pair("2.5 GT/s PCIe", 0.1875);
    rate = fmt::format(" link_speed=\"{}\" link_width=\"{}\"", speed, std::lround(device.gbps / per_lane));
  }
  line(depth, "<pci busid=\"{}\" class=\"0x{:06x}\" vendor=\"0x{:04x}\" device=\"0x{:04x}\"{}>", bus_id(id),
       device.pci_class != 0 ? device.pci_class : assumed, device.vendor, device.product, rate);
  if (device.kind == DeviceKind::gpu)
    for (const int part : topology_.parts_of(id)) gpu(part, depth + 1);
  if (device.kind == DeviceKind::nic) net(id, depth + 1);
  below(id, depth + 1, false);
  line(depth, "</pci>");
}

/// The schema has no host bridges: devices below them are written below the CPU.
void Writer::below(int id, int depth, bool with_orphans) {
  for (std::size_t child = 0; child < topology_.devices.size(); ++child) {
    const Device& device = topology_.devices[child];
    const bool leaf = device.kind != DeviceKind::package && device.kind != DeviceKind::numa;
    if (device.parent != id && !(with_orphans && leaf && device.parent < 0)) continue;
    if (device.kind == DeviceKind::host_bridge)
      below(static_cast<int>(child), depth, false);
    else if (leaf)
      function(static_cast<int>(child), depth);
  }
}

void Writer::cpu(int id) {
  const Device& device = topology_[id];
  const std::vector<int> nodes = topology_.of_kind(DeviceKind::numa);
  const auto [arch, vendor] = device.maker == CpuMaker::intel   ? std::pair("x86_64", "GenuineIntel")
                              : device.maker == CpuMaker::amd   ? std::pair("x86_64", "AuthenticAMD")
                              : device.maker == CpuMaker::arm   ? std::pair("arm64", "")
                              : device.maker == CpuMaker::power ? std::pair("ppc64", "")
                                                                : std::pair("x86_64", "");
  line(1, "<cpu numaid=\"{}\" affinity=\"{}\" arch=\"{}\" vendor=\"{}\" familyid=\"6\" modelid=\"{}\">", device.index,
       device.cpus.empty() ? "" : mask_of_cpus(cpus_of_list(device.cpus)), arch, vendor, device.model);
  below(id, 2, nodes.front() == id);
  for (const int nic : topology_.nics())  // listed under every CPU: near all of them
    if (topology_[nic].anywhere && topology_[nic].parent != id) net(nic, 2);
  // A device below a package with several nodes is nearest to the first.
  const auto beside = std::ranges::find(nodes, device.parent, [&](int node) { return topology_[node].parent; });
  if (device.parent >= 0 && *beside == id) below(device.parent, 2, false);
  line(1, "</cpu>");
}

std::string Writer::write() {
  // NCCL takes no notice of an attribute that it does not know.
  text_ = topology_.nvlink_known || topology_.gpus().empty() ? "<system version=\"1\">\n"
                                                             : "<system version=\"1\" nvlinks=\"unknown\">\n";
  for (const int id : topology_.of_kind(DeviceKind::numa)) cpu(id);
  text_ += "</system>\n";
  return std::move(text_);
}

}  // namespace

std::string write_nccl(const Topology& topology) {
  return Writer(topology).write();
}

}  // namespace tutti::topology
