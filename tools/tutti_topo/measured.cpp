#include "measured.h"

#include <fmt/format.h>

#include <sched.h>

#include "topology/graph/cpus.h"
#include "tune/measure.h"

namespace {

using namespace tutti;

constexpr std::size_t places_max = 4;

struct Place {
  std::string name;
  std::vector<int> cpus;  ///< that this process may use
};

std::vector<Place> places_of(const topology::Topology& machine) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) CPU_SET(0, &allowed);
  const auto usable = [&](int cpu) { return cpu < CPU_SETSIZE && CPU_ISSET(cpu, &allowed); };
  std::vector<Place> places;
  for (const int node : machine.of_kind(topology::DeviceKind::numa)) {
    Place place{.name = machine[node].name};
    for (const int cpu : topology::cpus_of_list(machine[node].cpus))
      if (usable(cpu)) place.cpus.push_back(cpu);
    if (!place.cpus.empty() && places.size() < places_max) places.push_back(std::move(place));
  }
  if (!places.empty()) return places;
  Place all{.name = "this machine"};  // it is unknown what is near to what
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (usable(cpu)) all.cpus.push_back(cpu);
  return {all};
}

void measure_pair(const std::string& where, int one, int other, std::vector<topology::Constant>& found,
                  std::vector<std::string>& undone) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(one, &cpus);
  CPU_SET(other, &cpus);
  const auto machine = measure(cpus);
  if (!machine) {
    undone.push_back(fmt::format("{}: not measured, other work keeps CPU {} or {} busy", where, one, other));
    return;
  }
  const std::string by = fmt::format("measured on CPUs {} and {}", one, other);
  found.push_back({fmt::format("{}: a store until the other CPU sees it", where), machine->hop_us, "us", by});
  found.push_back(
      {fmt::format("{}: reading what the other CPU wrote", where), machine->far_read.gbps.back(), "GB/s", by});
  found.push_back({fmt::format("{}: reading memory", where), machine->read.gbps.back(), "GB/s", by});
  found.push_back({fmt::format("{}: storing past the caches", where), machine->nontemporal_gbps, "GB/s", by});
}

}  // namespace

std::vector<topology::Constant> measured_constants(const topology::Topology& machine,
                                                   std::vector<std::string>& undone) {
  std::vector<topology::Constant> found;
  const std::vector<Place> places = places_of(machine);
  for (std::size_t a = 0; a < places.size(); ++a) {
    if (places[a].cpus.size() > 1)
      measure_pair("within " + places[a].name, places[a].cpus[0], places[a].cpus[1], found, undone);
    else
      undone.push_back(fmt::format("within {}: not measured, only one CPU may be used", places[a].name));
    for (std::size_t b = a + 1; b < places.size(); ++b)
      measure_pair(fmt::format("{} to {}", places[a].name, places[b].name), places[a].cpus[0], places[b].cpus[0], found,
                   undone);
  }
  return found;
}
