#include "topology/search/placement.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "topology/graph/cpus.h"
#include "topology/graph/path.h"
#include "topology/search/search.h"

namespace tutti::topology {
namespace {

constexpr double pci_assumed = 12;  // NCCL's value for an unknown rate: 8 GT/s x16

/// The lowest device that NVLink or xGMI connects with a GPU, at any number of hops; -1: the GPU has no links.
int nvlink_domain(const Topology& topology, int gpu) {
  std::vector<bool> inside(topology.devices.size(), false);
  for (const int part : topology.parts_of(gpu)) inside[static_cast<std::size_t>(part)] = true;
  bool found = false;
  for (bool grows = true; grows;) {
    grows = false;
    for (const Link& link : topology.links) {
      const auto from = static_cast<std::size_t>(link.from), to = static_cast<std::size_t>(link.to);
      if (link.kind == LinkKind::memory || inside[from] == inside[to]) continue;
      inside[from] = inside[to] = grows = found = true;
    }
  }
  return found ? static_cast<int>(std::ranges::find(inside, true) - inside.begin()) : -1;
}

/// One ring in the order of the tree, with the rate of its slowest hop.
RankChannels tree_ring(const Topology& topology, std::span<const int> devices) {
  std::vector<int> order(devices.size());
  std::iota(order.begin(), order.end(), 0);
  const auto device = [&](int rank) { return devices[static_cast<std::size_t>(rank)]; };
  std::ranges::stable_sort(order, {}, [&](int rank) { return way_to(topology, device(rank)); });
  double slowest = 0;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const Path hop = path(topology, device(order[at]), device(order[(at + 1) % order.size()]));
    const double gbps = hop.gbps > 0 ? hop.gbps : pci_assumed;
    slowest = slowest > 0 ? std::min(slowest, gbps) : gbps;
  }
  return {.orders = {std::move(order)}, .gbps_each = slowest};
}

}  // namespace

int outermost_switch(const Topology& topology, int device) {
  int found = -1;
  for (int up = device; up >= 0; up = topology[up].parent)
    if (topology[up].kind == DeviceKind::bridge) found = up;
  return found;
}

RankLocation location_at(int host, const Topology& topology, int device) {
  RankLocation location{.host = host};
  if (device < 0) return location;
  location.numa = topology[device].numa;
  int home = topology.above(device, DeviceKind::numa);
  if (home < 0) home = topology.find(DeviceKind::numa, location.numa);  // only its number is known
  if (const int package = topology.above(home >= 0 ? home : device, DeviceKind::package); package >= 0)
    location.package = topology[package].index;
  const int shared = outermost_switch(topology, device);
  if (topology[device].kind == DeviceKind::gpu) location.nvlink = nvlink_domain(topology, device);
  location.pci_switch = shared >= 0 ? shared : static_cast<int>(topology.devices.size()) + device;
  return location;
}

std::string nearest_nic(const Topology& topology, int device) {
  if (device < 0) return {};
  const std::vector<int> nics = topology.nics();
  const auto nearest = std::ranges::min_element(nics, {}, [&](int nic) {
    const Path way = pci_path(topology, device, nic);
    return std::pair(way.kind, -way.gbps);
  });
  return nearest == nics.end() ? std::string() : topology[*nearest].name;
}

std::vector<int> grouped(std::span<const RankLocation> locations, std::size_t parts) {
  std::map<std::vector<int>, int> numbers;
  std::vector<int> groups;
  for (const RankLocation& location : locations) {
    const std::array whole = {location.groups[0], location.groups[1], location.groups[2],
                              location.host,      location.package,   location.numa,
                              location.cache,     location.nvlink,    location.pci_switch};
    const std::vector<int> key(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(parts));
    groups.push_back(numbers.try_emplace(key, static_cast<int>(numbers.size())).first->second);
  }
  return groups;
}

std::vector<std::vector<int>> levels_of(std::span<const RankLocation> locations) {
  std::vector<std::vector<int>> levels;
  for (std::size_t parts = 1; parts <= location_parts; ++parts) {
    std::vector<int> level = grouped(locations, parts);
    const std::size_t groups = level.empty() ? 0 : static_cast<std::size_t>(*std::ranges::max_element(level)) + 1;
    const bool divides = groups > 1 && groups < locations.size();
    if (divides && (levels.empty() || levels.back() != level)) levels.push_back(std::move(level));
  }
  return levels;
}

RankChannels channels_of(const Topology& topology, std::span<const int> devices) {
  if (devices.size() < 2) return {};
  std::map<int, std::vector<int>> ranks_of;  // by number of a GPU: its ranks
  bool all_gpus = true;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    const Device& device = topology[devices[rank]];
    all_gpus = all_gpus && device.kind == DeviceKind::gpu;
    ranks_of[device.index].push_back(static_cast<int>(rank));
  }
  if (!all_gpus || ranks_of.size() < 2) return tree_ring(topology, devices);
  std::vector<int> numbers;
  for (const auto& [number, ranks] : ranks_of) numbers.push_back(number);
  const Search found = search(with_gpus(topology, numbers));
  RankChannels channels{.gbps_each = found.rings.gbps_each};
  for (const auto& order : found.rings.orders) {
    auto& line = channels.orders.emplace_back();
    for (const int number : order) std::ranges::copy(ranks_of[number], std::back_inserter(line));
  }
  return channels;
}

std::string cpus_near(const Topology& topology, int device) {
  std::string near = device >= 0 ? topology[device].cpus : std::string();
  if (const int home = device < 0 ? -1 : topology.above(device, DeviceKind::numa); near.empty() && home >= 0)
    near = topology[home].cpus;
  if (near.empty() && device >= 0)  // directly below a package, or only its number is known
    for (const int node : topology.of_kind(DeviceKind::numa))
      if (topology[node].index == topology[device].numa) near = topology[node].cpus;
  if (topology.allowed_cpus.empty()) return near;
  const std::string usable = common_cpus(near, topology.allowed_cpus);
  return usable.empty() ? topology.allowed_cpus : usable;
}

}  // namespace tutti::topology
