#include "place/locator.h"

#include <fmt/format.h>

#include "base/file.h"
#include "place/job_file.h"
#include "place/locations.h"
#include "place/machine_text.h"
#include "place/ring_file.h"
#include "topology/sources/detect.h"

namespace tutti {

Locator::Locator(Files files, bool live) : files_(std::move(files)), live_(live) {}
Locator::~Locator() = default;

Result<HostGroups> Locator::groups() const {
  return files_.groups.empty() ? files_.groups_of_slurm : host_groups(files_.groups);
}

Result<LocatedRank> Locator::locate(const cpu_set_t& cpus, const std::string& gpu) {
  const bool recorded = !files_.machine.empty();
  auto own_groups = TUTTI_TRY(groups());
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
  if (!recorded) location = gpu.empty() ? location_on(*machine_, cpus) : location_at_gpu(*machine_, cpus, gpu);
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
    if (auto written = write_rings(files_.ring_dump, rings_of_first_host(map, hosts)); !written)
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
