#include "topology/graph/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tutti::topology {
namespace {

/// The device that a GPU is a part of; empty: none. The parts of an AMD device may be functions of it.
std::string_view whole_device(const Device& gpu) {
  constexpr std::uint32_t amd = 0x1002;
  const std::string_view at = gpu.bus_id;
  if (gpu.vendor == amd) return at.substr(0, at.rfind('.'));
  return gpu.partition.empty() ? std::string_view() : at;
}

void tree_below(const Topology& topology, const std::vector<std::vector<int>>& children, int id, int depth,
                std::string& text) {
  const Device& device = topology[id];
  text += fmt::format("{:{}}{} {}", "", depth * 2, name(device.kind), device.name);
  if (!device.bus_id.empty() && device.bus_id != device.name) text += fmt::format(" {}", device.bus_id);
  if (!device.partition.empty()) text += fmt::format(" part {}", device.partition);
  if (!device.cpus.empty() && device.kind == DeviceKind::numa) text += fmt::format(" cpus {}", device.cpus);
  if (device.gbps > 0) text += fmt::format(" {:.4g} GB/s", device.gbps);
  if (device.network_gbps > 0) text += fmt::format(", wire {:.4g} GB/s", device.network_gbps);
  std::map<int, int> ends;
  for (const Link& link : topology.links)
    if (link.from == id) ends[link.to] += link.count;
  for (const auto& [to, count] : ends) text += fmt::format(" {}x{}", topology[to].name, count);
  text += '\n';
  for (const int child : children[static_cast<std::size_t>(id)]) tree_below(topology, children, child, depth + 1, text);
}

/// The topology with `order[i]` as device i; devices that are not in `order` are removed.
Topology rearranged(const Topology& from, const std::vector<int>& order) {
  std::vector<int> new_id(from.devices.size(), -1);
  for (std::size_t at = 0; at < order.size(); ++at) new_id[static_cast<std::size_t>(order[at])] = static_cast<int>(at);
  const auto of = [&](int id) { return id < 0 ? -1 : new_id[static_cast<std::size_t>(id)]; };
  Topology to{
      .origin = from.origin, .nvlink_known = from.nvlink_known, .allowed_cpus = from.allowed_cpus, .notes = from.notes};
  for (const int id : order) {
    to.devices.push_back(from[id]);
    to.devices.back().parent = of(from[id].parent);
  }
  for (const Link& link : from.links)
    if (of(link.from) >= 0 && of(link.to) >= 0) {
      to.links.push_back(link);
      to.links.back().from = of(link.from);
      to.links.back().to = of(link.to);
    }
  for (const auto& [pair, kind] : from.stated)
    if (of(pair.first) >= 0 && of(pair.second) >= 0) to.stated[{of(pair.first), of(pair.second)}] = kind;
  for (const auto& [pair, status] : from.p2p)
    if (of(pair.first) >= 0 && of(pair.second) >= 0) to.p2p[{of(pair.first), of(pair.second)}] = status;
  return to;
}

}  // namespace

std::string_view name(DeviceKind kind) {
  constexpr std::string_view names[] = {"package", "numa",     "host_bridge", "bridge",
                                        "gpu",     "nvswitch", "nic",         "function"};
  return names[static_cast<int>(kind)];
}

std::string_view name(LinkKind kind) {
  constexpr std::string_view names[] = {"nvlink", "xgmi", "memory"};
  return names[static_cast<int>(kind)];
}

std::string_view name(PathKind kind) {
  constexpr std::string_view names[] = {"LOC", "NVL", "NVB",  "C2C", "PIX", "PXB", "P2C",
                                        "PXN", "PHB", "NODE", "SYS", "NET", "DIS"};
  return names[static_cast<int>(kind)];
}

std::vector<int> Topology::of_kind(DeviceKind kind) const {
  std::vector<int> found;
  for (std::size_t id = 0; id < devices.size(); ++id)
    if (devices[id].kind == kind) found.push_back(static_cast<int>(id));
  return found;
}

int Topology::above(int device, DeviceKind kind) const {
  while (device >= 0 && (*this)[device].kind != kind) device = (*this)[device].parent;
  return device;
}

int Topology::find(DeviceKind kind, int index) const {
  const auto at =
      std::ranges::find_if(devices, [&](const Device& device) { return device.kind == kind && device.index == index; });
  return at == devices.end() ? -1 : static_cast<int>(at - devices.begin());
}

int Topology::add(Device device) {
  devices.push_back(std::move(device));
  return static_cast<int>(devices.size()) - 1;
}

int Topology::find_bus(std::string_view bus_id) const {
  if (bus_id.empty()) return -1;
  const auto at = std::ranges::find(devices, bus_id, &Device::bus_id);
  return at == devices.end() ? -1 : static_cast<int>(at - devices.begin());
}

int Topology::direct_links(int from, int to) const {
  int count = 0;
  for (const Link& link : links)
    if (link.from == from && link.to == to && link.kind != LinkKind::memory) count += link.count;
  return count;
}

int Topology::fabric_links(int gpu) const {
  int count = 0;
  for (const Link& link : links)
    if (link.from == gpu && (*this)[link.to].kind == DeviceKind::nvswitch) count += link.count;
  return count;
}

int Topology::fabric_of(int gpu) const {
  int first_seen = -1;  // of the switches with an address
  for (const int id : of_kind(DeviceKind::nvswitch))
    if (first_seen < 0 && !(*this)[id].bus_id.empty()) first_seen = id;
  for (const Link& link : links)
    if (link.from == gpu && (*this)[link.to].kind == DeviceKind::nvswitch)
      return (*this)[link.to].bus_id.empty() ? link.to : first_seen;
  return -1;
}

int Topology::nvlinks(int gpu, int other) const {
  if (gpu == other) return 0;
  const int switched = std::min(fabric_links(gpu), fabric_links(other));
  return std::min(direct_links(gpu, other), direct_links(other, gpu)) +
         (switched > 0 && fabric_of(gpu) == fabric_of(other) ? switched : 0);
}

double Topology::nvlink_gbps(int gpu) const {
  for (const Link& link : links)
    if (link.from == gpu && link.kind != LinkKind::memory) return link.gbps;
  return 0;
}

std::vector<int> Topology::parts_of(int gpu) const {
  if ((*this)[gpu].partition.empty()) return {gpu};
  std::vector<int> parts = gpus();
  std::erase_if(parts, [&](int other) {
    return (*this)[other].bus_id != (*this)[gpu].bus_id || (*this)[other].partition.empty();
  });
  return parts;
}

bool Topology::share_links(int gpu, int other) const {
  if (gpu == other || (*this)[gpu].kind != DeviceKind::gpu || (*this)[other].kind != DeviceKind::gpu) return false;
  const std::string_view device = whole_device((*this)[gpu]);
  if (device.empty() || device != whole_device((*this)[other])) return false;
  return nvlink_gbps(gpu) > 0 && nvlink_gbps(other) > 0;
}

std::string tree_text(const Topology& topology) {
  std::vector<std::vector<int>> children(topology.devices.size());
  std::string text;
  for (std::size_t id = 0; id < topology.devices.size(); ++id)
    if (const int parent = topology.devices[id].parent; parent >= 0)
      children[static_cast<std::size_t>(parent)].push_back(static_cast<int>(id));
  for (std::size_t id = 0; id < topology.devices.size(); ++id)
    if (topology.devices[id].parent < 0) tree_below(topology, children, static_cast<int>(id), 0, text);
  return text;
}

Topology subset(const Topology& topology, const std::vector<bool>& keep) {
  std::vector<int> order;
  for (std::size_t id = 0; id < keep.size(); ++id)
    if (keep[id]) order.push_back(static_cast<int>(id));
  return rearranged(topology, order);
}

Topology with_gpus(const Topology& topology, const std::vector<int>& numbers) {
  std::vector<bool> keep(topology.devices.size(), true);
  for (const int gpu : topology.gpus())
    keep[static_cast<std::size_t>(gpu)] = std::ranges::count(numbers, topology[gpu].index) > 0;
  return subset(topology, keep);  // GPUs keep their numbers: the user asked for GPU 4, not for a third one
}

void normalise(Topology& topology) {
  std::vector<int> depth(topology.devices.size(), 0);
  for (std::size_t id = 0; id < depth.size(); ++id)
    for (int up = topology.devices[id].parent; up >= 0; up = topology[up].parent) ++depth[id];
  std::vector<int> order(topology.devices.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int id) {
    const Device& device = topology[id];
    const bool is_leaf = device.kind >= DeviceKind::gpu;
    const int number = device.kind == DeviceKind::gpu && device.index >= 0 ? device.index : 1 << 30;
    return std::pair(is_leaf, is_leaf ? number : depth[static_cast<std::size_t>(id)]);
  });
  topology = rearranged(topology, order);
  int next = 0;
  for (const int gpu : topology.gpus()) {
    Device& device = topology[gpu];
    if (device.index < next) device.index = next;
    next = device.index + 1;
    if (device.name.empty()) device.name = fmt::format("GPU{}", device.index);
  }
  for (Device& device : topology.devices) {
    if (device.name.empty()) device.name = device.bus_id;
    for (int up = device.parent; up >= 0 && device.numa < 0; up = topology[up].parent)
      if (topology[up].kind == DeviceKind::numa) device.numa = topology[up].index;
  }
}

}  // namespace tutti::topology
