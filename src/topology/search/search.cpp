#include "topology/search/search.h"

#include <algorithm>
#include <map>

#include "topology/graph/path.h"

namespace tutti::topology {
namespace {

constexpr double pci_assumed = 12;  // NCCL's value for an unknown rate: 8 GT/s x16

double rate_of(const Topology& topology) {
  double rate = 0;
  for (const int gpu : topology.gpus())
    if (const double own = topology.nvlink_gbps(gpu); own > 0) rate = rate > 0 ? std::min(rate, own) : own;
  return rate;
}

/// One ring over the nearest paths; hops that share a link divide its rate.
Channels nearest_ring(const Topology& topology) {
  Channels ring;
  std::vector<int> order = topology.gpus();
  if (order.size() < 2) return ring;
  // In the order of the tree, a ring uses every link of the tree once in each direction.
  std::ranges::sort(order, {}, [&](int gpu) { return way_to(topology, gpu); });
  std::map<std::pair<int, int>, int> uses;
  std::vector<Path> hops;
  for (std::size_t at = 0; at < order.size(); ++at) {
    Path hop = path(topology, order[at], order[(at + 1) % order.size()]);
    if (hop.kind == PathKind::nvb) hop = pci_path(topology, order[at], order[(at + 1) % order.size()]);
    if (hop.kind > PathKind::nvl)
      for (std::size_t step = 1; step < hop.by.size(); ++step) ++uses[{hop.by[step - 1], hop.by[step]}];
    hops.push_back(hop);
  }
  ring.kind = PathKind::loc;
  ring.gbps_each = 0;
  for (const Path& hop : hops) {
    int shared = 1;
    for (std::size_t step = 1; step < hop.by.size(); ++step)
      if (const auto at = uses.find({hop.by[step - 1], hop.by[step]}); at != uses.end())
        shared = std::max(shared, at->second);
    const double gbps = (hop.gbps > 0 ? hop.gbps : pci_assumed) / shared;
    ring.gbps_each = ring.gbps_each > 0 ? std::min(ring.gbps_each, gbps) : gbps;
    ring.kind = std::max(ring.kind, hop.kind);
  }
  ring.orders.emplace_back();
  for (const int gpu : order) ring.orders[0].push_back(topology[gpu].index);
  return ring;
}

ChosenTree chosen(const Tree& tree, const std::vector<int>& numbers, double gbps) {
  ChosenTree out{.gbps = gbps, .root = numbers[static_cast<std::size_t>(tree.root)]};
  std::vector<int> line{tree.root};
  for (std::size_t at = 0; at < line.size(); ++at) {
    const int parent = tree.parent[static_cast<std::size_t>(line[at])];
    out.gpus.push_back(numbers[static_cast<std::size_t>(line[at])]);
    out.parent.push_back(parent < 0 ? -1 : numbers[static_cast<std::size_t>(parent)]);
    for (std::size_t child = 0; child < tree.parent.size(); ++child)
      if (tree.parent[child] == line[at]) line.push_back(static_cast<int>(child));
  }
  return out;
}

/// The numbers of the GPUs with links of their own, each with the GPUs that share its links, itself first.
std::vector<std::vector<int>> link_owners(const Topology& topology) {
  std::vector<std::vector<int>> owners;
  for (const int gpu : topology.gpus()) {
    const auto own =
        std::ranges::find_if(owners, [&](const auto& parts) { return topology.share_links(parts.front(), gpu); });
    if (own == owners.end())
      owners.push_back({gpu});
    else
      own->push_back(gpu);
  }
  for (auto& parts : owners)
    for (int& part : parts) part = topology[part].index;
  return owners;
}

/// A tree of devices, from one part of its root: each device is entered at one part, which passes the data to its other
/// parts.
ChosenTree spread(const ChosenTree& tree, std::map<int, std::vector<int>>& parts, std::size_t nth) {
  const auto entry = [&](int device) { return parts[device][nth % parts[device].size()]; };
  ChosenTree out{.gbps = tree.gbps / static_cast<double>(parts[tree.root].size()), .root = entry(tree.root)};
  for (std::size_t at = 0; at < tree.gpus.size(); ++at) {
    const int device = tree.gpus[at];
    out.gpus.push_back(entry(device));
    out.parent.push_back(tree.parent[at] < 0 ? -1 : entry(tree.parent[at]));
    for (const int part : parts[device]) {
      if (part == entry(device)) continue;
      out.gpus.push_back(part);
      out.parent.push_back(entry(device));
    }
  }
  return out;
}

/// Extends what was found for devices to all their parts: inside a device everything is faster than the links between
/// devices.
void spread(Search& found, const std::vector<std::vector<int>>& owners) {
  std::map<int, std::vector<int>> parts;
  for (const auto& own : owners) parts[own.front()] = own;
  for (auto& order : found.rings.orders) {
    std::vector<int> all;
    for (const int device : order) all.insert(all.end(), parts[device].begin(), parts[device].end());
    order = std::move(all);
  }
  std::vector<ChosenTree> trees;
  for (const ChosenTree& tree : found.trees)
    for (std::size_t nth = 0; nth < parts[tree.root].size(); ++nth) trees.push_back(spread(tree, parts, nth));
  found.trees = std::move(trees);
}

}  // namespace

Search search(const Topology& topology) {
  Search found;
  const auto ranks = static_cast<double>(topology.gpus().size());
  if (ranks < 2) return found;
  const auto owners = link_owners(topology);
  std::vector<int> numbers;
  for (const auto& parts : owners) numbers.push_back(parts.front());
  const Topology devices = with_gpus(topology, numbers);
  Capacity capacity = capacity_of(devices);
  const double rate = rate_of(devices);
  const Rings rings = owners.size() < 2 ? Rings() : pack_rings(capacity);
  if (rings.orders.empty()) {
    found.rings = nearest_ring(topology);
  } else {
    found.rings.kind = PathKind::nvl;
    found.rings.gbps_each = rate / rings.share;
    for (const auto& order : rings.orders) {
      auto& named = found.rings.orders.emplace_back();
      for (const int gpu : order) named.push_back(numbers[static_cast<std::size_t>(gpu)]);
    }
  }
  bool alike = true;  // trees are packed for roots with equal shares
  for (const auto& parts : owners) {
    capacity.parts.push_back(static_cast<long long>(parts.size()));
    alike = alike && parts.size() == owners.front().size();
  }
  found.bound_gbps = gather_bound(capacity).value() * ranks * rate;
  found.ring_gather_gbps = found.rings.gbps() * ranks / (ranks - 1);
  if (alike && found.bound_gbps > found.ring_gather_gbps * (1 + 1e-9)) {
    capacity.parts.clear();
    const Trees trees = pack_trees(capacity);
    for (const Tree& tree : trees.trees) {
      const double gbps = rate * static_cast<double>(tree.units) / static_cast<double>(trees.share);
      found.trees.push_back(chosen(tree, numbers, gbps));
      found.tree_gather_gbps += gbps;
    }
  }
  if (!rings.orders.empty() || !found.trees.empty()) spread(found, owners);
  return found;
}

}  // namespace tutti::topology
