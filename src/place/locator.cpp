#include "place/locator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "place/job_file.h"
#include "place/locations.h"
#include "topology/sources/detect.h"
#include "topology/sources/nccl_xml.h"
#include "topology/sources/read.h"
#include "topology/sources/write.h"

namespace tutti {

namespace {

/// Of TUTTI_GRAPH_FILE: the channels of the first ring in the file, each once: which of a host's ranks, counted from 0,
/// follow each other. NCCL names GPUs; the n-th rank of a host counts as its GPU n. Errors: system (cannot be read),
/// invalid_argument (no such file, no ring, a channel that does not name every number from 0 on once, channels of
/// different lengths).
Result<std::vector<std::vector<int>>> read_rings(const std::string& path) {
  auto text = TUTTI_TRY(read_file(path));
  auto graphs = TUTTI_TRY(topology::read_graphs(text));
  const auto graph = std::ranges::find(graphs, topology::ring_pattern, &topology::Graph::pattern);
  const auto refused = [](std::string what) { return Error{.code = Code::invalid_argument, .what = std::move(what)}; };
  if (graph == graphs.end() || graph->channels.empty()) return refused("it has no ring (a <graph> of pattern 4)");
  const std::size_t gpus = graph->channels[0].size();
  std::vector<std::vector<int>> rings;
  for (std::size_t at = 0; at < graph->channels.size(); ++at) {
    const std::vector<int>& ring = graph->channels[at];
    std::vector<int> sorted = ring;
    std::ranges::sort(sorted);
    for (std::size_t i = 0; i < gpus; ++i)
      if (sorted.size() != gpus || sorted[i] != static_cast<int>(i))
        return refused(fmt::format("channel {} of its ring does not name each of {} GPUs, from 0 on, once", at, gpus));
    // NCCL writes channels twice that have twice the links.
    if (std::ranges::find(rings, ring) == rings.end()) rings.push_back(ring);
  }
  return rings;
}

}  // namespace

std::string machine_text(const topology::Topology& machine) {
  topology::Topology alike = machine;
  for (topology::Device& device : alike.devices) device.gbps = std::max(device.gbps, device.gbps_max);
  return topology::write_hwloc(alike);
}

Result<SharedMachine> read_machine_text(std::string_view text) {
  auto machine = topology::read(text, "another host");
  if (!machine) return Error{.code = Code::remote, .what = "not a machine: " + machine.error().text()};
  return std::make_shared<const topology::Topology>(*std::move(machine));
}

Result<LocatedRank> Locator::locate(const cpu_set_t& cpus, const std::string& gpu) {
  const bool recorded = !files_.machine.empty();
  HostGroups own_groups = files_.groups_of_slurm;
  if (!files_.groups.empty()) own_groups = TUTTI_TRY(host_groups(files_.groups));
  if (!recorded && !live_) return LocatedRank{.location = {.groups = own_groups}};
  const std::lock_guard lock(mutex_);
  // NVIDIA's driver takes tenths of a second to start, and ranks on CPUs do not need what it says.
  const bool asks_drivers = !recorded && (!gpu.empty() || !files_.dump.empty());
  if (!machine_ || (asks_drivers && !drivers_asked_)) {
    auto found = topology::detect({.file = files_.machine, .dump = files_.dump, .nvml = asks_drivers});
    if (!found)
      return std::move(found).error().during("read or write the machine (TUTTI_TOPO_FILE, TUTTI_TOPO_DUMP_FILE)");
    machine_ = std::make_shared<const topology::Topology>(*std::move(found));
    text_ = std::make_shared<const std::string>(machine_text(*machine_));
    drivers_asked_ = asks_drivers;
  }
  ReportedLocation location{.recorded = 1};
  if (!recorded) location = location_at_gpu(*machine_, cpus, gpu);
  location.groups = own_groups;
  return LocatedRank{.location = location, .machine = machine_, .text = text_};
}

Result<JobMap> Locator::map(const JobRanks& ranks) const {
  const std::span<const int> hosts = ranks.hosts;
  JobMap map = map_of(ranks.locations, hosts, ranks.machines);
  if (!files_.ring.empty()) {
    auto rings = read_rings(files_.ring);
    auto taken = rings ? take_rings(map, *rings, hosts) : Result<void>(std::move(rings).error());
    if (!taken) return std::move(taken).error().during(fmt::format("use TUTTI_GRAPH_FILE={}", files_.ring));
  }
  if (!files_.ring_dump.empty())
    if (auto written = write_file(files_.ring_dump, topology::write_rings(rings_of_first_host(map, hosts))); !written)
      return std::move(written).error().during("write TUTTI_GRAPH_DUMP_FILE");
  if (ranks.by_number) {
    map.order.clear();
    map.rings.clear();
  }
  if (!ranks.dump.empty())
    if (auto written = write_file(ranks.dump, to_json(job_of(ranks, map))); !written)
      return std::move(written).error().during("write TUTTI_JOB_DUMP_FILE");
  return map;
}

}  // namespace tutti
