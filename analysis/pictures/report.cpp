#include "analysis/pictures/report.h"

#include <fmt/format.h>

#include <map>

#include "base/printable.h"
#include "topology/graph/path.h"
#include "topology/search/placement.h"
#include "topology/search/warnings.h"

namespace tutti::topology {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < ' ')
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

/// "[a,\n  b]" from lines that are JSON.
std::string list(const std::vector<std::string>& lines) {
  return lines.empty() ? "[]" : fmt::format("[\n    {}\n  ]", joined(lines, ",\n    "));
}

std::string devices_json(const Topology& topology) {
  std::vector<std::string> lines;
  for (const Device& device : topology.devices) {
    std::string line = fmt::format(
        "{{\"kind\": \"{}\", \"name\": {}, \"busid\": {}, \"numa\": {}, \"index\": {}, \"parent\": {}",
        name(device.kind), quoted(device.name), quoted(device.bus_id), device.numa, device.index, device.parent);
    if (!device.partition.empty()) line += fmt::format(", \"partition\": {}", quoted(device.partition));
    if (!device.cpus.empty()) line += fmt::format(", \"cpus\": {}", quoted(device.cpus));
    if (!device.fabric.empty()) line += fmt::format(", \"fabric\": {}", quoted(device.fabric));
    if (device.memory_numa >= 0) line += fmt::format(", \"memory_numa\": {}", device.memory_numa);
    if (device.gbps > 0) line += fmt::format(", \"gbps\": {}", device.gbps);
    if (device.network_gbps > 0) line += fmt::format(", \"network_gbps\": {}", device.network_gbps);
    lines.push_back(line + fmt::format(", \"source\": {}}}", quoted(device.source)));
  }
  return list(lines);
}

std::string matrix_json(const Topology& topology, bool kinds) {
  const std::vector<int> devices = matrix_devices(topology);
  std::vector<std::string> lines;
  for (const int from : devices) {
    std::vector<std::string> cells;
    for (const int to : devices) {
      if (!kinds) {
        cells.push_back(quoted(cell(topology, from, to)));
        continue;
      }
      const Path way = path(topology, from, to);
      cells.push_back(
          fmt::format("{{\"kind\": \"{}\", \"gbps\": {}, \"hops\": {}}}", name(way.kind), way.gbps, way.hops));
    }
    lines.push_back(fmt::format("[{}]", joined(cells, ", ")));
  }
  return list(lines);
}

std::string links_json(const Topology& topology) {
  std::vector<std::string> lines;
  for (const Link& link : topology.links)
    lines.push_back(fmt::format("{{\"from\": {}, \"to\": {}, \"kind\": \"{}\", \"count\": {}, \"gbps_each\": {}}}",
                                quoted(topology[link.from].name), quoted(topology[link.to].name), name(link.kind),
                                link.count, link.gbps));
  return list(lines);
}

std::string constants_json(const Topology& topology, std::span<const Constant> measured) {
  std::vector<Constant> all = constants(topology);
  all.insert(all.end(), measured.begin(), measured.end());
  std::vector<std::string> lines;
  for (const Constant& constant : all)
    lines.push_back(fmt::format("{{\"what\": {}, \"value\": {}, \"unit\": {}, \"source\": {}}}", quoted(constant.what),
                                constant.value, quoted(constant.unit), quoted(constant.source)));
  return list(lines);
}

/// One rank per GPU, in order of their numbers: its levels, and the CPUs to bind it to.
std::string placement_json(const Topology& topology) {
  std::vector<RankLocation> locations;
  std::vector<std::string> levels, near;
  for (const int gpu : topology.gpus()) {
    locations.push_back(location_at(0, topology, gpu));
    near.push_back(quoted(cpus_near(topology, gpu)));
  }
  for (const auto& level : levels_of(locations)) levels.push_back(fmt::format("[{}]", joined(level, ", ")));
  return fmt::format("  \"levels\": [{}],\n  \"near_cpus\": [{}],\n", joined(levels, ", "), joined(near, ", "));
}

std::string rdma_json(std::span<const RdmaPort> ports) {
  std::vector<std::string> all;
  for (const RdmaPort& port : ports) {
    std::vector<std::string> gids;
    for (const RdmaPort::Gid& gid : port.gids)
      gids.push_back(fmt::format("{{\"index\": {}, \"address\": {}, \"type\": {}}}", gid.index, quoted(gid.address),
                                 quoted(gid.type)));
    all.push_back(
        fmt::format("{{\"device\": {}, \"port\": {}, \"state\": {}, \"rate\": {}, \"link_layer\": {}, \"gids\": [{}]}}",
                    quoted(port.device), port.number, quoted(port.state), quoted(port.rate), quoted(port.link_layer),
                    joined(gids, ", ")));
  }
  return list(all);
}

}  // namespace

std::string json(const Topology& topology, const Search& search, std::span<const Constant> measured,
                 std::span<const RdmaPort> rdma) {
  std::vector<std::string> names, rings, trees, lines;
  for (const int id : matrix_devices(topology)) names.push_back(quoted(topology[id].name));
  for (const auto& order : search.rings.orders) rings.push_back(fmt::format("[{}]", joined(order, ", ")));
  for (const ChosenTree& tree : search.trees)
    trees.push_back(fmt::format("{{\"root\": {}, \"gbps\": {}, \"gpus\": [{}], \"parents\": [{}]}}", tree.root,
                                tree.gbps, joined(tree.gpus, ", "), joined(tree.parent, ", ")));
  for (const std::string& line : warnings(topology)) lines.push_back(quoted(line));
  std::string text = "{\n";
  text += fmt::format("  \"origin\": {},\n  \"devices\": {},\n", quoted(topology.origin), devices_json(topology));
  text +=
      fmt::format("  \"matrix_names\": [{}],\n  \"matrix\": {},\n", joined(names, ", "), matrix_json(topology, false));
  text += fmt::format("  \"paths\": {},\n  \"links\": {},\n", matrix_json(topology, true), links_json(topology));
  text += fmt::format("  \"nvlink_known\": {},\n  \"allowed_cpus\": {},\n", topology.nvlink_known,
                      quoted(topology.allowed_cpus));
  text += placement_json(topology);
  text += fmt::format("  \"rings\": {{\"count\": {}, \"gbps_each\": {}, \"kind\": \"{}\", \"orders\": {}}},\n",
                      search.rings.orders.size(), search.rings.gbps_each, name(search.rings.kind), list(rings));
  text += fmt::format("  \"trees\": {},\n  \"ring_gather_gbps\": {},\n  \"tree_gather_gbps\": {},\n", list(trees),
                      search.ring_gather_gbps, search.tree_gather_gbps);
  text += fmt::format("  \"cut_bound_gbps\": {},\n  \"constants\": {},\n", search.bound_gbps,
                      constants_json(topology, measured));
  text += fmt::format("  \"rdma_ports\": {},\n  \"warnings\": {}\n}}\n", rdma_json(rdma), list(lines));
  return text;
}

std::string rdma_text(std::span<const RdmaPort> ports) {
  std::string text;
  for (const RdmaPort& port : ports) {
    text += fmt::format("  {} port {}: {}, {}, {}\n", port.device, port.number, port.state, port.link_layer, port.rate);
    for (const RdmaPort::Gid& gid : port.gids)
      text += fmt::format("    GID {}: {}{}\n", gid.index, gid.address, gid.type.empty() ? "" : ", " + gid.type);
  }
  return text;
}

std::string search_text(const Search& search) {
  const Channels& rings = search.rings;
  if (rings.orders.empty()) return "Rings: none, as there are fewer than two GPUs\n";
  std::string text = fmt::format("Rings: {} of {:.4g} GB/s = {:.5g} GB/s by {}", rings.orders.size(), rings.gbps_each,
                                 rings.gbps(), name(rings.kind));
  text += fmt::format("; an all-gather gives {:.5g} GB/s", search.ring_gather_gbps);
  if (search.bound_gbps > 0) text += fmt::format(" of at most {:.5g} on NVLink", search.bound_gbps);
  text += '\n';
  std::map<std::vector<int>, int> times;
  for (const auto& order : rings.orders) ++times[order];
  for (const auto& [order, count] : times) text += fmt::format("  {:>3} x {}\n", count, joined(order, " "));
  if (search.trees.empty()) return text;
  text += fmt::format("Trees: {}, on which an all-gather gives {:.5g} GB/s\n", search.trees.size(),
                      search.tree_gather_gbps);
  for (const ChosenTree& tree : search.trees) {
    text += fmt::format("  {:.4g} GB/s from {}:", tree.gbps, tree.root);
    for (std::size_t at = 1; at < tree.gpus.size(); ++at) text += fmt::format(" {}>{}", tree.parent[at], tree.gpus[at]);
    text += '\n';
  }
  return text;
}

}  // namespace tutti::topology
