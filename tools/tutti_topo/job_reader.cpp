// Reads what TUTTI_JOB_DUMP_FILE has written.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/limits.h"
#include "formats/json.h"
#include "job.h"
#include "place/job_map.h"

namespace {

using namespace tutti;
using formats::JsonAt;
using formats::JsonReader;
using topology::DeviceKind;

constexpr int number_max = 1 << 24;  // of packages, caches and the like
constexpr std::size_t devices_max = 16384, machines_max = 4096;

std::optional<DeviceKind> kind_of(std::string_view name) {
  for (const DeviceKind kind : {DeviceKind::package, DeviceKind::numa, DeviceKind::gpu, DeviceKind::nic})
    if (topology::name(kind) == name) return kind;
  return std::nullopt;
}

topology::Topology read_devices(JsonReader& json, const JsonAt& list) {
  topology::Topology machine;
  const std::vector<JsonAt> items = json.items(list);
  if (items.size() > devices_max) json.refuse(list, fmt::format("more than {} devices", devices_max));
  for (const JsonAt& item : items) {
    if (json.failed()) return machine;
    const JsonAt kind_at = json.member(item, "kind");
    const std::string_view kind_name = json.text(kind_at);
    const auto kind = kind_of(kind_name);
    if (!kind) {
      json.refuse(kind_at, fmt::format("\"{}\" is not package, numa, gpu or nic", kind_name.substr(0, 40)));
      return machine;
    }
    const int last = static_cast<int>(machine.devices.size()) - 1;
    topology::Device device{.kind = *kind, .name = std::string(json.text(json.member(item, "name")))};
    device.index = json.number(json.member(item, "index"), -1, number_max);
    device.parent = json.number(json.member(item, "parent"), -1, last);
    device.numa = json.number(json.member(item, "numa"), -1, number_max);
    machine.add(std::move(device));
  }
  if (machine.gpus().size() > topology::machine_gpus_max)
    json.refuse(list, fmt::format("more than {} GPUs", topology::machine_gpus_max));
  return machine;
}

void read_ranks(JsonReader& json, const JsonAt& root, topology::Job& job) {
  const JsonAt list = json.member(root, "ranks");
  const std::vector<JsonAt> items = json.items(list);
  if (items.empty() || items.size() > static_cast<std::size_t>(limits::ranks_max))
    json.refuse(list, fmt::format("{} ranks, not 1 … {}", items.size(), limits::ranks_max));
  std::vector<bool> used(job.hosts.size(), false);
  for (const JsonAt& item : items) {
    if (json.failed()) return;
    const int host = json.pick(json.member(item, "host"), job.hosts.size());
    if (json.failed()) return;
    used[static_cast<std::size_t>(host)] = true;
    job.locations.push_back({.host = host,
                             .package = json.number(json.member(item, "package"), -1, number_max),
                             .numa = json.number(json.member(item, "numa"), -1, number_max),
                             .cache = json.number(json.member(item, "cache"), -1, number_max),
                             .nvlink = json.number(json.member(item, "nvlink"), -1, number_max),
                             .pci_switch = json.number(json.member(item, "switch"), -1, number_max)});
    job.devices.emplace_back(json.text(json.member(item, "device")));
    job.nics.emplace_back(json.text(json.member(item, "nic")));
  }
  if (const auto idle = std::ranges::find(used, false); idle != used.end())
    json.refuse(list, fmt::format("none is on host {}", idle - used.begin()));
}

std::vector<int> numbers(JsonReader& json, const JsonAt& list, std::size_t count) {
  const std::vector<JsonAt> items = json.items(list);
  if (items.size() != count) json.refuse(list, fmt::format("{} numbers for {} ranks", items.size(), count));
  std::vector<int> all;
  for (const JsonAt& item : items) all.push_back(json.number(item, 0, static_cast<long long>(count) - 1));
  return all;
}

/// Levels, order and rings, with the checks that ranks make of what rank 0 sends them.
void read_map(JsonReader& json, const JsonAt& root, topology::Job& job) {
  JobMap map;
  const JsonAt levels = json.member(root, "levels");
  for (const JsonAt& level : json.items(levels)) map.levels.push_back(numbers(json, level, job.locations.size()));
  map.order = numbers(json, json.member(root, "order"), job.locations.size());
  if (const JsonAt rings = json.optional_member(root, "rings"); rings)
    for (const JsonAt& ring : json.items(rings)) map.rings.push_back(numbers(json, ring, job.locations.size()));
  if (json.failed()) return;
  const auto read = read_job_map(to_bytes(map), static_cast<int>(job.locations.size()));
  if (!read) json.refuse(root, read.error().what);
  job.levels = std::move(map.levels);
  job.order = std::move(map.order);
  job.rings = std::move(map.rings);
}

}  // namespace

Result<topology::Job> read_job(const std::string& path) {
  auto text = read_file(path, file_bytes_max, FileKind::stream);
  if (!text) return std::move(text).error();
  auto value = formats::parse_json(*text);
  if (!value) return std::move(value).error().during("read " + path);
  JsonReader json;
  const JsonAt root{&*value, ""};
  json.number(json.member(root, "format"), 2, 2);
  topology::Job job{.origin = std::string(json.text(json.member(root, "origin")))};
  const JsonAt machines = json.member(root, "machines");
  for (const JsonAt& machine : json.items(machines)) {
    if (json.failed()) break;
    job.machines.push_back(read_devices(json, machine));
  }
  if (job.machines.size() > machines_max) json.refuse(machines, fmt::format("more than {} machines", machines_max));
  const int last = static_cast<int>(job.machines.size()) - 1;
  for (const JsonAt& host : json.items(json.member(root, "hosts"))) {
    job.hosts.push_back({.name = std::string(json.text(json.member(host, "name")))});
    job.hosts.back().machine = json.number(json.member(host, "machine"), -1, last);
    if (json.failed()) break;
  }
  if (!json.failed()) read_ranks(json, root, job);
  if (!json.failed()) read_map(json, root, job);
  if (json.failed()) return json.error().during("read " + path);
  return job;
}
