#include "measured.h"

#include <fmt/format.h>

#include <sched.h>

#include "base/host.h"
#include "topology/graph/cpus.h"
#include "tune/machine_file.h"
#include "tune/measure.h"

namespace {

using namespace tutti;

constexpr std::size_t places_max = 4;

struct Place {
  std::string name;
  std::vector<int> cpus;  ///< that this process may use
};

std::vector<Place> places_of(const topology::Topology& machine) {
  const cpu_set_t allowed = own_cpus();
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

std::string unit_of(std::string_view name) {
  return name.ends_with("_us") ? "us" : "GB/s";
}

/// All numbers within a place; between two places those that tell the distance.
void measure_pair(const std::string& where, int one, int other, bool within, Measured& found) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(one, &cpus);
  CPU_SET(other, &cpus);
  const auto machine = measure(cpus);
  if (!machine) {
    found.undone.push_back(fmt::format("{}: not measured, other work keeps CPU {} or {} busy", where, one, other));
    return;
  }
  const std::string by = fmt::format("measured on CPUs {} and {}", one, other);
  const auto numbers = machine->machine.numbers();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::string& name = Machine::names()[i];
    if (within || name == "hop_us" || name.starts_with("far_"))
      found.constants.push_back({fmt::format("{}: {}", where, name), numbers[i], by, unit_of(name)});
  }
  if (within && found.machine_file.empty())
    found.machine_file = to_text(machine->machine, machine_name(2), seconds_since_1970());
}

}  // namespace

Measured measure_places(const topology::Topology& machine) {
  Measured found;
  const std::vector<Place> places = places_of(machine);
  for (std::size_t a = 0; a < places.size(); ++a) {
    if (places[a].cpus.size() > 1)
      measure_pair("within " + places[a].name, places[a].cpus[0], places[a].cpus[1], true, found);
    else
      found.undone.push_back(fmt::format("within {}: not measured, only one CPU may be used", places[a].name));
    for (std::size_t b = a + 1; b < places.size(); ++b)
      measure_pair(fmt::format("{} to {}", places[a].name, places[b].name), places[a].cpus[0], places[b].cpus[0], false,
                   found);
  }
  return found;
}
