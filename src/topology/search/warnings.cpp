#include "topology/search/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/printable.h"
#include "topology/graph/path.h"
#include "topology/search/placement.h"

namespace tutti::topology {
namespace {

using Lines = std::vector<std::string>;

void nvlink_rows(const Topology& topology, Lines& lines) {
  const std::vector<int> gpus = topology.gpus();
  std::map<int, int> most;  // links per GPU: the number of GPUs with so many
  std::map<int, int> own;
  for (const int gpu : gpus) {
    for (const Link& link : topology.links)
      if (link.from == gpu && link.kind != LinkKind::memory) own[gpu] += link.count;
    ++most[own[gpu]];
    for (const int other : gpus) {
      const int there = topology.direct_links(gpu, other), back = topology.direct_links(other, gpu);
      if (gpu < other && there != back)
        lines.push_back(fmt::format("{} has {} NVLinks to {}, which has {} back: the smaller number is used",
                                    topology[gpu].name, there, topology[other].name, back));
    }
  }
  if (most.empty() || most.rbegin()->first == 0) return;
  const int usual =
      std::ranges::max_element(most, {}, [](const auto& entry) { return std::pair(entry.second, entry.first); })->first;
  for (const int gpu : gpus) {
    if (own[gpu] == 0)
      lines.push_back(fmt::format("{} is off the NVLink fabric: it has no NVLink, others have {}", topology[gpu].name,
                                  most.rbegin()->first));
    else if (own[gpu] < usual && topology.fabric_links(gpu) > 0)
      lines.push_back(fmt::format("{} has {} NVLinks, others have {}", topology[gpu].name, own[gpu], usual));
  }
}

void pci_links(const Topology& topology, Lines& lines) {
  for (std::size_t id = 0; id < topology.devices.size(); ++id) {
    const Device& device = topology.devices[id];
    if (device.off_fabric)
      lines.push_back(fmt::format("{} has not joined the NVLink fabric, according to its driver", device.name));
    if (device.gbps_max > device.gbps * 1.01 && device.gbps > 0)
      lines.push_back(fmt::format("{}: its PCI link gives {:.4g} GB/s and is made for {:.4g}", device.name, device.gbps,
                                  device.gbps_max));
    if (device.kind != DeviceKind::bridge || device.gbps <= 0) continue;
    const Device* fastest = nullptr;
    for (const Device& below : topology.devices)
      if (below.parent == static_cast<int>(id) && (!fastest || below.gbps > fastest->gbps)) fastest = &below;
    if (fastest && fastest->gbps > device.gbps * 1.01)
      lines.push_back(fmt::format("bridge {} reports {:.4g} GB/s, slower than {} below it ({:.4g})", device.name,
                                  device.gbps, fastest->name, fastest->gbps));
  }
}

void affinities(const Topology& topology, Lines& lines) {
  std::map<std::string, std::set<std::string>> nodes;
  for (const int id : topology.of_kind(DeviceKind::numa))
    if (!topology[id].cpus.empty()) nodes[topology[id].cpus].insert(topology[id].name);
  for (const auto& [cpus, names] : nodes)
    if (names.size() > 1)
      lines.push_back(fmt::format("{} have identical affinity masks ({})", joined(names, ", "), cpus));
}

void peers(const Topology& topology, Lines& lines) {
  for (const auto& [pair, status] : topology.p2p) {
    if (pair.first > pair.second || status == "OK") continue;
    const auto& [one, other] = pair;
    if (topology.nvlinks(one, other) > 0)
      lines.push_back(fmt::format("{} and {} have NVLinks, but P2P is {}: blocked by the driver, ACS or the IOMMU",
                                  topology[one].name, topology[other].name, status));
    // GNS: not supported by the hardware, which is not a fault.
    else if (const PathKind kind = pci_path(topology, one, other).kind; kind <= PathKind::pxb && status != "GNS")
      lines.push_back(fmt::format("{} and {} share a PCI switch ({}), but P2P is {}: blocked by ACS or the IOMMU",
                                  topology[one].name, topology[other].name, name(kind), status));
  }
}

/// Uses only what the system reports, without the driver: a switch whose GPUs have their own groups sends all traffic
/// through the root.
void isolation(const Topology& topology, Lines& lines) {
  std::map<int, std::vector<int>> below;  // switch: its GPUs
  std::vector<std::string> translated;
  const std::vector<int> gpus = topology.gpus();
  for (const int gpu : gpus) {
    if (topology[gpu].iommu_translates) translated.push_back(topology[gpu].name);
    const int outermost = outermost_switch(topology, gpu);
    if (outermost >= 0 && topology[gpu].iommu_group >= 0) below[outermost].push_back(gpu);
  }
  for (const auto& [bridge, members] : below) {
    std::set<int> groups;
    for (const int gpu : members) groups.insert(topology[gpu].iommu_group);
    if (groups.size() < 2) continue;
    lines.push_back(
        fmt::format("the {} GPUs below switch {} are in {} IOMMU groups: ACS sends their P2P through the root",
                    members.size(), topology[bridge].name, groups.size()));
  }
  if (gpus.size() > 1 && !translated.empty())
    lines.push_back(fmt::format("the IOMMU translates addresses of {}: P2P over PCI may be blocked or slow",
                                joined(translated, ", ")));
}

}  // namespace

std::vector<std::string> warnings(const Topology& topology) {
  Lines lines;
  nvlink_rows(topology, lines);
  pci_links(topology, lines);
  affinities(topology, lines);
  peers(topology, lines);
  isolation(topology, lines);
  lines.insert(lines.end(), topology.notes.begin(), topology.notes.end());
  return lines;
}

}  // namespace tutti::topology
