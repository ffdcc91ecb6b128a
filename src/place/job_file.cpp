#include "place/job_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/fixed_text.h"
#include "base/markup.h"
#include "base/printable.h"
#include "place/locations.h"

namespace tutti {
namespace {

using topology::Device;
using topology::DeviceKind;
using topology::Topology;

/// Names come from the system: what JSON does not allow inside a string becomes a question mark.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = letter_bytes(text, at);
    const auto c = static_cast<unsigned char>(text[at]);
    if (bytes > 0) {
      result += text.substr(at, bytes);
    } else if (c == '"' || c == '\\') {
      result += {'\\', text[at]};
    } else {
      result += c >= 0x20 && c < 0x7f ? text[at] : '?';
    }
    at += std::max<std::size_t>(bytes, 1);
  }
  return result + '"';
}

bool is_outline(const Device& device) {
  return device.kind == DeviceKind::package || device.kind == DeviceKind::numa || device.kind == DeviceKind::gpu ||
         device.kind == DeviceKind::nic;
}

/// The parts of a machine in which ranks sit, without buses and links.
std::string devices_json(const Topology& machine) {
  std::vector<int> row_of(machine.devices.size(), -1);
  std::vector<std::string> rows;
  for (std::size_t id = 0; id < machine.devices.size(); ++id) {
    const Device& device = machine.devices[id];
    const int above = device.parent < 0 ? -1 : row_of[static_cast<std::size_t>(device.parent)];
    row_of[id] = above;  // what is below a bridge is below what the bridge is in
    if (!is_outline(device)) continue;
    row_of[id] = static_cast<int>(rows.size());
    rows.push_back(fmt::format(R"(      {{"kind": "{}", "name": {}, "index": {}, "parent": {}, "numa": {}}})",
                               topology::name(device.kind), quoted(device.name), device.index, above, device.numa));
  }
  return fmt::format("[\n{}\n    ]", joined(rows, ",\n"));
}

std::vector<ReportedLocation> alike_locations(const PlannedJob& planned, const Topology* machine) {
  const auto ranks = static_cast<std::size_t>(planned.hosts) * static_cast<std::size_t>(planned.ranks_per_host);
  return std::vector<ReportedLocation>(ranks, {.recorded = machine != nullptr ? 1u : 0u});
}

}  // namespace

topology::Job job_of(const JobRanks& ranks, const JobMap& map) {
  const HostMachines machines(ranks.machines);
  const JobLocations located = job_locations(ranks.locations, ranks.hosts, machines);
  topology::Job job{.locations = located.locations, .levels = map.levels, .order = map.order, .rings = map.rings};
  if (const Topology* const first = machines.of(0)) job.origin = first->origin;
  if (job.order.empty()) {
    job.order.resize(ranks.hosts.size());
    std::iota(job.order.begin(), job.order.end(), 0);
  }
  std::map<const Topology*, int> kinds = {{nullptr, -1}};
  std::map<int, int> number;  // by the first rank of a host
  for (std::size_t rank = 0; rank < ranks.hosts.size(); ++rank) {
    const auto [host, is_new] = number.try_emplace(ranks.hosts[rank], static_cast<int>(job.hosts.size()));
    const Topology* const machine = machines.of(ranks.hosts[rank]);
    const auto [kind, is_new_kind] = kinds.try_emplace(machine, static_cast<int>(job.machines.size()));
    if (is_new_kind) job.machines.push_back(*machine);
    if (is_new) job.hosts.push_back({.name = ranks.names[rank], .machine = kind->second});
    job.locations[rank].host = host->second;
    const int device = located.devices[rank];
    job.devices.push_back(device >= 0 ? (*machine)[device].name : std::string());
    job.nics.push_back(device >= 0 ? topology::nearest_nic(*machine, device) : get_text(ranks.locations[rank].nic));
  }
  return job;
}

std::string to_json(const topology::Job& job) {
  std::vector<std::string> hosts, ranks, levels, rings, machines;
  for (const topology::JobHost& host : job.hosts)
    hosts.push_back(fmt::format(R"(    {{"name": {}, "machine": {}}})", quoted(host.name), host.machine));
  for (std::size_t rank = 0; rank < job.locations.size(); ++rank) {
    const topology::RankLocation& location = job.locations[rank];
    ranks.push_back(fmt::format(
        R"(    {{"host": {}, "package": {}, "numa": {}, "cache": {}, "nvlink": {}, "switch": {}, "device": {}, "nic": {}}})",
        location.host, location.package, location.numa, location.cache, location.nvlink, location.pci_switch,
        quoted(job.devices[rank]), quoted(job.nics[rank])));
  }
  for (const auto& level : job.levels) levels.push_back(fmt::format("    [{}]", joined(level, ", ")));
  for (const auto& ring : job.rings) rings.push_back(fmt::format("    [{}]", joined(ring, ", ")));
  for (const Topology& machine : job.machines) machines.push_back("    " + devices_json(machine));
  std::string text = fmt::format("{{\n  \"format\": 2,\n  \"origin\": {},\n", quoted(job.origin));
  text +=
      fmt::format("  \"hosts\": [\n{}\n  ],\n  \"ranks\": [\n{}\n  ],\n", joined(hosts, ",\n"), joined(ranks, ",\n"));
  text +=
      fmt::format("  \"levels\": [\n{}\n  ],\n  \"order\": [{}],\n", joined(levels, ",\n"), joined(job.order, ", "));
  if (!rings.empty()) text += fmt::format("  \"rings\": [\n{}\n  ],\n", joined(rings, ",\n"));
  text += fmt::format("  \"machines\": [\n{}\n  ]\n}}\n", joined(machines, ",\n"));
  return text;
}

std::vector<int> hosts_of(const PlannedJob& planned) {
  const int each = planned.ranks_per_host;
  std::vector<Rank> filling = planned.filling;
  if (filling.empty()) {
    filling.resize(static_cast<std::size_t>(planned.hosts) * static_cast<std::size_t>(each));
    std::iota(filling.begin(), filling.end(), 0);
  }
  std::vector<int> hosts(filling.size());
  for (auto first = filling.begin(); first != filling.end(); first += each)
    for (auto rank = first; rank != first + each; ++rank)
      hosts[static_cast<std::size_t>(*rank)] = *std::min_element(first, first + each);
  return hosts;
}

JobMap map_of(const PlannedJob& planned, const Topology* machine) {
  return map_of(alike_locations(planned, machine), hosts_of(planned), machine);
}

topology::Job job_of(const PlannedJob& planned, const Topology& machine) {
  const std::vector<ReportedLocation> locations = alike_locations(planned, &machine);
  const std::vector<int> hosts = hosts_of(planned);
  const std::vector<std::string> names(hosts.size());
  const std::vector<SharedMachine> machines(hosts.size(), std::make_shared<const Topology>(machine));
  topology::Job job = job_of({.locations = locations, .hosts = hosts, .names = names, .machines = machines},
                             map_of(locations, hosts, machines));
  if (machine.origin == "live") job.origin = "this machine";
  for (std::size_t host = 0; host < job.hosts.size(); ++host) job.hosts[host].name = fmt::format("host{}", host);
  return job;
}

}  // namespace tutti
