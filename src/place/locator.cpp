#include "place/locator.h"

#include <fmt/format.h>

#ifdef TUTTI_HAS_TOPOLOGY
#include "base/file.h"
#include "place/job_file.h"
#include "place/ring_file.h"
#include "place/seats.h"
#include "topology/sources/detect.h"
#else
namespace tutti::topology {
struct Topology {};
}  // namespace tutti::topology
#endif

namespace tutti {

Locator::Locator(Files files, bool live) : files_(std::move(files)), live_(live) {}
Locator::~Locator() = default;

#ifdef TUTTI_HAS_TOPOLOGY

Result<OwnSeat> Locator::seat(const cpu_set_t& cpus) {
  if (files_.machine.empty() && !live_) return OwnSeat{};
  const std::lock_guard lock(mutex_);
  if (!machine_) {
    // NVIDIA's driver takes tenths of a second to start, and ranks on CPUs do not need what it says.
    auto found = topology::detect({.file = files_.machine, .dump = files_.dump, .nvml = !files_.dump.empty()});
    if (!found)
      return std::move(found).error().during("read or write the machine (TUTTI_TOPO_FILE, TUTTI_TOPO_DUMP_FILE)");
    machine_ = std::make_unique<const topology::Topology>(*std::move(found));
  }
  if (!files_.machine.empty()) return OwnSeat{.recorded = 1};
  return seat_on(*machine_, cpus);
}

Result<JobMap> Locator::map(const JobRanks& ranks) const {
  const std::lock_guard lock(mutex_);
  const std::span<const int> hosts = ranks.hosts;
  JobMap map = map_of(ranks.seats, hosts, machine_.get());
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
    if (auto written = write_file(ranks.dump, to_json(job_of(ranks, map, machine_.get()))); !written)
      return std::move(written).error().during("write TUTTI_JOB_DUMP_FILE");
  return map;
}

#else

namespace {

Error no_detector() {
  return {.code = Code::invalid_argument,
          .what =
              "TUTTI_TOPO_FILE, TUTTI_GRAPH_FILE and those to be written: this build has no detector; build it "
              "with pugixml, nlohmann-json and CLI11"};
}

}  // namespace

Result<OwnSeat> Locator::seat(const cpu_set_t&) {
  if (files_.machine.empty() && files_.dump.empty() && files_.ring.empty() && files_.ring_dump.empty())
    return OwnSeat{};
  return no_detector();
}

Result<JobMap> Locator::map(const JobRanks& ranks) const {
  if (!ranks.dump.empty()) return no_detector();
  const Level level(ranks.hosts.begin(), ranks.hosts.end());
  const auto first = [&](std::size_t i) { return level[i] == static_cast<int>(i); };
  std::size_t groups = 0;
  for (std::size_t i = 0; i < level.size(); ++i) groups += first(i) ? 1 : 0;
  return groups > 1 && groups < level.size() ? JobMap{.levels = {level}} : JobMap{};
}

#endif

}  // namespace tutti
