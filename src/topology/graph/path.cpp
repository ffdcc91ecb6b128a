#include "topology/graph/path.h"

#include <algorithm>
#include <tuple>

#include "topology/graph/rates.h"

namespace tutti::topology {
namespace {

std::vector<int> ancestors(const Topology& topology, int device) {
  std::vector<int> line;
  for (; device >= 0; device = topology[device].parent) line.push_back(device);
  return line;
}

bool one_nic(const Device& a, const Device& b) {  // functions of one device
  const std::size_t dot = a.bus_id.rfind('.');
  return dot != std::string::npos && a.bus_id.substr(0, dot) == b.bus_id.substr(0, b.bus_id.rfind('.'));
}

double narrower(double a, double b) {
  if (a <= 0 || b <= 0) return std::max(a, b);
  return std::min(a, b);
}

/// `below` are the last devices on each side before `meeting`; -1: the device itself is there.
PathKind kind_at(const Topology& topology, const Path& path, int meeting, int below_from, int below_to) {
  const auto kind = [&](int id) { return id < 0 ? DeviceKind::function : topology[id].kind; };
  switch (kind(meeting)) {
    case DeviceKind::bridge: {
      const auto bridges = std::ranges::count_if(path.by, [&](int id) { return kind(id) == DeviceKind::bridge; });
      return bridges > 1 ? PathKind::pxb : PathKind::pix;
    }
    case DeviceKind::host_bridge: return PathKind::phb;
    case DeviceKind::numa:
    case DeviceKind::package: {
      if (kind(below_from) == DeviceKind::numa || kind(below_to) == DeviceKind::numa) return PathKind::sys;
      const bool roots = kind(below_from) == DeviceKind::host_bridge && kind(below_to) == DeviceKind::host_bridge;
      return roots ? PathKind::node : PathKind::phb;
    }
    case DeviceKind::gpu:
    case DeviceKind::nvswitch:
    case DeviceKind::nic:
    case DeviceKind::function: break;
  }
  return PathKind::sys;
}

Path nvlink_path(const Topology& topology, int from, int to) {
  const int direct = std::min(topology.direct_links(from, to), topology.direct_links(to, from));
  const int links = topology.nvlinks(from, to);
  if (links == 0) return {};
  Path found{PathKind::nvl, links * std::min(topology.nvlink_gbps(from), topology.nvlink_gbps(to)), 1, {from, to}};
  if (direct == 0) {
    found.hops = 2;
    const auto hub = topology.of_kind(DeviceKind::nvswitch);
    found.by = {from, hub.front(), to};
  }
  return found;
}

Path joined(const Path& first, const Path& second, PathKind kind) {
  Path both{kind, narrower(first.gbps, second.gbps), first.hops + second.hops, first.by};
  both.by.insert(both.by.end(), second.by.begin() + 1, second.by.end());
  return both;
}

double memory_gbps(const Topology& topology, int gpu, int cpu) {
  for (const Link& link : topology.links)
    if (link.kind == LinkKind::memory && link.from == gpu && (cpu < 0 || link.to == cpu)) return link.gbps * link.count;
  return 0;
}

/// The nearer one, of two that are as near the faster one.
void take(Path& best, const Path& other) {
  const auto key = [](const Path& path) { return std::tuple(path.kind, -path.gbps, path.hops); };
  if (other.kind != PathKind::dis && key(other) < key(best)) best = other;
}

Path gpu_to_nic(const Topology& topology, int gpu, int nic) {
  Path best = pci_path(topology, gpu, nic);
  const int home = topology.above(gpu, DeviceKind::numa);
  const double c2c = memory_gbps(topology, gpu, home);
  if (c2c > 0 && home >= 0 && best.kind >= PathKind::phb && topology.above(nic, DeviceKind::numa) == home)
    take(best, {PathKind::p2c, narrower(c2c, uplink_gbps(topology, nic)), 2, {gpu, home, nic}});
  if (best.kind <= PathKind::pxn) return best;
  for (const int peer : topology.gpus()) {
    if (peer == gpu || topology.nvlinks(gpu, peer) == 0) continue;
    const Path rest = pci_path(topology, peer, nic);
    if (rest.kind <= PathKind::pxb) take(best, joined(nvlink_path(topology, gpu, peer), rest, PathKind::pxn));
  }
  return best;
}

}  // namespace

std::vector<int> way_to(const Topology& topology, int device) {
  std::vector<int> way = ancestors(topology, device);
  std::ranges::reverse(way);
  return way;
}

double uplink_gbps(const Topology& topology, int device) {
  const double said = topology[device].gbps;
  if (topology[device].kind != DeviceKind::bridge) return said;
  double below = 0;
  for (const Device& other : topology.devices)
    if (other.parent == device) below = std::max(below, other.gbps);
  constexpr double believable = 16;  // no real switch is this much slower than one of its ports
  return said * believable < below ? below : said;
}

double cpu_gbps(const Topology& topology) {
  for (const int id : topology.of_kind(DeviceKind::numa))
    if (topology[id].maker != CpuMaker::unknown) return rates::cpu(topology[id].maker, topology[id].model);
  return rates::cpu(CpuMaker::unknown, 0);
}

Path pci_path(const Topology& topology, int from, int to) {
  if (from == to) return {PathKind::loc, rates::local, 0, {from}};
  const std::vector<int> up = ancestors(topology, from), down = ancestors(topology, to);
  std::size_t here = 0, there = down.size();
  for (; here < up.size(); ++here) {
    there = static_cast<std::size_t>(std::ranges::find(down, up[here]) - down.begin());
    if (there < down.size()) break;
  }
  Path path;
  const bool meet = here < up.size();
  path.by.assign(up.begin(), up.begin() + static_cast<std::ptrdiff_t>(std::min(here + 1, up.size())));
  path.by.insert(path.by.end(), down.rend() - static_cast<std::ptrdiff_t>(there), down.rend());
  for (std::size_t at = 0; at < here; ++at) path.gbps = narrower(path.gbps, uplink_gbps(topology, up[at]));
  for (std::size_t at = 0; at < there; ++at) path.gbps = narrower(path.gbps, uplink_gbps(topology, down[at]));
  path.hops = static_cast<int>(path.by.size()) - 1;
  if (meet)
    path.kind = kind_at(topology, path, up[here], here > 0 ? up[here - 1] : -1, there > 0 ? down[there - 1] : -1);
  else
    path.kind = topology[from].anywhere || topology[to].anywhere ? PathKind::phb : PathKind::sys;
  if (one_nic(topology[from], topology[to])) path.kind = PathKind::pix;
  if (path.kind == PathKind::sys) path.gbps = narrower(path.gbps, cpu_gbps(topology));
  const auto stated = topology.stated.find({from, to});
  if (stated != topology.stated.end()) path.kind = stated->second;
  return path;
}

Path path(const Topology& topology, int from, int to) {
  const DeviceKind a = topology[from].kind, b = topology[to].kind;
  if (from == to) return pci_path(topology, from, to);
  if (topology.share_links(from, to)) return {PathKind::loc, rates::local, 1, {from, to}};
  if (a == DeviceKind::gpu && b == DeviceKind::nic) return gpu_to_nic(topology, from, to);
  if (a == DeviceKind::nic && b == DeviceKind::gpu) {
    Path back = gpu_to_nic(topology, to, from);
    std::ranges::reverse(back.by);
    return back;
  }
  Path best = pci_path(topology, from, to);
  if (a == DeviceKind::gpu && b == DeviceKind::numa)
    if (const double c2c = memory_gbps(topology, from, to); c2c > 0) take(best, {PathKind::c2c, c2c, 1, {from, to}});
  if (a != DeviceKind::gpu || b != DeviceKind::gpu) return best;
  if (const Path link = nvlink_path(topology, from, to); link.kind != PathKind::dis) return link;
  if (topology.links.empty()) return best;
  for (const int by : topology.gpus()) {
    if (topology.nvlinks(from, by) == 0) continue;
    const Path first = nvlink_path(topology, from, by), second = nvlink_path(topology, by, to);
    if (first.kind != PathKind::dis && second.kind != PathKind::dis) take(best, joined(first, second, PathKind::nvb));
  }
  return best;
}

}  // namespace tutti::topology
