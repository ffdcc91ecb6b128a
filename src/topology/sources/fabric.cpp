#include "topology/sources/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tutti::topology {
namespace {

constexpr std::uint32_t amd = 0x1002;
constexpr int links_of_a_gpu = 18;   // Hopper and Blackwell; older ones have fewer
constexpr std::size_t told_max = 3;  // pairs that are named

/// NVLinks from GPU to GPU.
using Counts = std::map<std::pair<int, int>, int>;

/// A link that reaches all parts of a device counts once.
Counts counts_of(const Topology& topology) {
  Counts counts;
  for (const Link& link : topology.links)
    if (link.kind == LinkKind::nvlink && topology[link.from].kind == DeviceKind::gpu &&
        topology[link.to].kind == DeviceKind::gpu && topology.parts_of(link.to).front() == link.to)
      counts[{link.from, link.to}] += link.count;
  return counts;
}

int links_to(const Counts& counts, int from, int to) {
  const auto found = counts.find({from, to});
  return found == counts.end() ? 0 : found->second;
}

/// Groups of GPUs that links connect, at any number of hops.
std::vector<std::vector<int>> islands_of(const Counts& counts) {
  std::map<int, std::vector<int>> next;
  for (const auto& [ends, count] : counts)
    if (count > 0) {
      next[ends.first].push_back(ends.second);
      next[ends.second].push_back(ends.first);
    }
  std::vector<std::vector<int>> islands;
  std::map<int, bool> seen;
  for (const auto& [first, ends] : next) {
    if (seen[first]) continue;
    std::vector<int> island{first};
    seen[first] = true;
    for (std::size_t at = 0; at < island.size(); ++at)
      for (const int end : next[island[at]])
        if (!std::exchange(seen[end], true)) island.push_back(end);
    std::ranges::sort(island);
    islands.push_back(std::move(island));
  }
  return islands;
}

void note_contradictions(Topology& topology, const Counts& counts, const std::map<int, int>& own) {
  std::vector<std::string> lines;
  for (const auto& [one, links] : own)
    for (const auto& [other, others] : own) {
      const int shown = std::min(links_to(counts, one, other), links_to(counts, other, one));
      if (one < other && shown != std::min(links, others))
        lines.push_back(fmt::format("{} and {} have {} NVLinks according to the source, and {} by the switches",
                                    topology[one].name, topology[other].name, shown, std::min(links, others)));
    }
  if (lines.size() > told_max)
    lines = {fmt::format("{} pairs of GPUs have other numbers of NVLinks according to the source than by the switches",
                         lines.size())};
  topology.notes.insert(topology.notes.end(), lines.begin(), lines.end());
}

void put_switch(Topology& topology, const Counts& counts, const std::vector<int>& island) {
  std::map<int, int> own;  // each GPU's links to the switch
  for (const auto& [ends, count] : counts)
    if (std::ranges::binary_search(island, ends.first)) own[ends.first] = std::max(own[ends.first], count);
  const auto number = topology.of_kind(DeviceKind::nvswitch).size();
  const std::string source = topology[island.front()].source;
  const int hub = topology.add({.kind = DeviceKind::nvswitch, .name = fmt::format("NVS{}", number), .source = source});
  std::vector<Link> links;
  for (const auto& [gpu, count] : own)
    links.push_back({.from = gpu, .to = hub, .count = count, .gbps = topology.nvlink_gbps(gpu), .source = source});
  std::erase_if(topology.links, [&](const Link& link) {
    const bool direct = link.kind == LinkKind::nvlink && topology[link.to].kind == DeviceKind::gpu;
    return direct && std::ranges::binary_search(island, link.from);
  });
  topology.links.insert(topology.links.end(), links.begin(), links.end());
  note_contradictions(topology, counts, own);
}

}  // namespace

bool has_nvidia(const Topology& topology) {
  return std::ranges::any_of(topology.gpus(), [&](int gpu) { return topology[gpu].vendor != amd; });
}

bool has_amd(const Topology& topology) {
  return std::ranges::any_of(topology.gpus(), [&](int gpu) { return topology[gpu].vendor == amd; });
}

void mark_links_unknown(Topology& topology, std::string_view why) {
  const bool nvlink = has_nvidia(topology), xgmi = has_amd(topology);
  if (!nvlink && !xgmi) return;
  topology.nvlink_known = false;
  const std::string_view links = !xgmi ? "NVLinks" : nvlink ? "NVLinks and xGMI links" : "xGMI links";
  topology.notes.push_back(fmt::format("{}: {} are not known", why, links));
}

void find_switches(Topology& topology) {
  const Counts counts = counts_of(topology);
  std::map<int, int> total;
  for (const auto& [ends, count] : counts) total[ends.first] += count;
  for (const std::vector<int>& island : islands_of(counts))
    if (std::ranges::any_of(island, [&](int gpu) { return total[gpu] > links_of_a_gpu; }))
      put_switch(topology, counts, island);
}

}  // namespace tutti::topology
