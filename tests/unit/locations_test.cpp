// Where ranks of live and recorded machines sit, and whether a machine survives being told to another host.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/fixed_text.h"
#include "place/job_file.h"
#include "place/locations.h"
#include "place/locator.h"
#include "topology/sources/read.h"

namespace tutti {
namespace {

using topology::Topology;

/// With an address for each GPU, as live machines have.
Topology machine_of(const std::string& name) {
  auto machine = topology::read_machine(std::string(TUTTI_TEST_MACHINES "/") + name);
  EXPECT_TRUE(machine) << name;
  if (!machine) return {};
  for (const int gpu : machine->gpus())
    if ((*machine)[gpu].bus_id.empty()) (*machine)[gpu].bus_id = fmt::format("0000:{:02x}:00.0", 16 + gpu);
  return *std::move(machine);
}

std::vector<ReportedLocation> recorded(std::size_t ranks) {
  return std::vector<ReportedLocation>(ranks, {.recorded = 1});
}

/// A rank on each GPU of a live machine, as each tells it.
std::vector<ReportedLocation> on_each_gpu(const Topology& machine) {
  std::vector<ReportedLocation> locations;
  cpu_set_t anywhere;
  CPU_ZERO(&anywhere);
  for (const int gpu : machine.gpus()) locations.push_back(location_at_gpu(machine, anywhere, machine[gpu].bus_id));
  return locations;
}

JobMap map_on(const std::vector<ReportedLocation>& locations, const Topology& machine) {
  return map_of(locations, std::vector(locations.size(), 0), &machine);
}

TEST(Seats, OfGpusOfALiveMachineAreThoseOfARecordedOne) {
  for (const char* name : {"cube-mesh-double.txt", "switched-8.xml", "all-to-all-4x3.txt"}) {
    const Topology machine = machine_of(name);
    const std::vector<ReportedLocation> locations = on_each_gpu(machine);
    EXPECT_FALSE(get_text(locations[0].gpu).empty());
    EXPECT_EQ(map_on(locations, machine), map_on(recorded(locations.size()), machine)) << name;
  }
}

TEST(Seats, OfGpusAreTakenWhateverTheRanksAreCalled) {
  const Topology machine = machine_of("cube-mesh-double.txt");
  std::vector<ReportedLocation> locations = on_each_gpu(machine);
  const JobMap straight = map_on(locations, machine);
  std::ranges::reverse(locations);
  const JobMap reversed = map_on(locations, machine);
  ASSERT_EQ(reversed.order.size(), 8u);
  std::vector<Rank> same;  // the same GPUs next to each other
  for (const Rank rank : reversed.order) same.push_back(7 - rank);
  std::rotate(same.begin(), std::ranges::find(same, 0), same.end());
  EXPECT_EQ(same, straight.order);
  EXPECT_EQ(locations[0].numa, 1);
  EXPECT_EQ(locations[7].numa, 0);
}

TEST(Seats, OfAGpuThatTheMachineDoesNotHaveAreThoseOfItsCpus) {
  const Topology machine = machine_of("switched-8.xml");
  cpu_set_t anywhere;
  CPU_ZERO(&anywhere);
  const ReportedLocation location = location_at_gpu(machine, anywhere, "00ff:00:00.0");
  EXPECT_EQ(location.numa, -1);
  const JobLocations places =
      job_locations(std::vector{location, on_each_gpu(machine)[5]}, std::vector{0, 0}, &machine);
  EXPECT_EQ(places.devices[0], -1);
  EXPECT_EQ(machine[places.devices[1]].name, "GPU5");
  EXPECT_EQ(places.locations[1].numa, 1);
}

TEST(Seats, OfARankWithAGpuBeginWithAnotherLook) {
  Locator locator;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  const auto first = locator.locate(cpus, ""), gpu = locator.locate(cpus, "00ff:00:00.0");
  ASSERT_TRUE(first && gpu);
  EXPECT_NE(first->machine, gpu->machine) << "the drivers of GPUs are asked now";
  EXPECT_EQ(locator.locate(cpus, "")->machine, gpu->machine) << "and once";
  EXPECT_EQ(locator.locate(cpus, "00fe:00:00.0")->machine, gpu->machine);
  EXPECT_EQ(get_text(gpu->location.gpu), "00ff:00:00.0");
  EXPECT_FALSE(first->text->empty());
}

TEST(Seats, NameTheNearestNic) {
  const Topology machine = machine_of("switched-8.xml");
  const std::vector<ReportedLocation> locations = on_each_gpu(machine);
  std::set<std::string> nics;
  for (const ReportedLocation& location : locations) nics.insert(get_text(location.nic));
  EXPECT_EQ(nics.size(), 8u) << "each GPU has a NIC of its own";
  EXPECT_FALSE(nics.contains(""));
  EXPECT_EQ(get_text(on_each_gpu(machine_of("cube-mesh-double.txt"))[0].nic), "") << "it has none";
}

TEST(Map, HasNvlinkDomains) {
  Topology machine = machine_of("all-to-all-8x1.txt");
  const auto domain = [&](int device) { return machine[device].index / 2; };
  std::erase_if(machine.links, [&](const topology::Link& link) { return domain(link.from) != domain(link.to); });
  std::vector<ReportedLocation> locations = on_each_gpu(machine);
  std::swap(locations[1], locations[4]);
  const JobMap map = map_on(locations, machine);
  ASSERT_FALSE(map.levels.empty());
  const Level& pairs = map.levels.back();
  EXPECT_EQ(pairs, (Level{0, 1, 2, 2, 0, 1, 3, 3})) << "bridges join pairs of GPUs";
  EXPECT_EQ(job_locations(locations, std::vector(8, 0), &machine).locations[2].nvlink,
            job_locations(locations, std::vector(8, 0), &machine).locations[3].nvlink);
  machine.links.clear();
  EXPECT_EQ(job_locations(locations, std::vector(8, 0), &machine).locations[2].nvlink, -1);
}

TEST(Map, HasEachHostsOwnMachine) {
  const auto mesh = std::make_shared<const Topology>(machine_of("cube-mesh-double.txt"));
  const auto switched = std::make_shared<const Topology>(machine_of("switched-8.xml"));
  std::vector<int> hosts(16, 0);
  std::fill(hosts.begin() + 8, hosts.end(), 8);
  std::vector<SharedMachine> machines(16, switched);
  std::fill(machines.begin() + 8, machines.end(), mesh);
  const std::vector<ReportedLocation> locations = recorded(16);
  const JobMap map = map_of(locations, hosts, machines);
  const JobMap alone = map_on(recorded(8), *mesh);
  ASSERT_EQ(map.order.size(), 16u);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(map.order[i], static_cast<Rank>(i)) << "behind a switch any order is as good";
    EXPECT_EQ(map.order[8 + i], alone.order[i] + 8);
  }
  ASSERT_FALSE(map.levels.empty());
  EXPECT_EQ(map.levels[0], (Level{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}));

  const std::vector<std::string> names(16, "host");
  const topology::Job job = job_of({.locations = locations, .hosts = hosts, .names = names, .machines = machines}, map);
  ASSERT_EQ(job.machines.size(), 2u);
  EXPECT_EQ(job.machine_of(0)->links.size(), switched->links.size());
  EXPECT_EQ(job.machine_of(1)->links.size(), mesh->links.size());
}

TEST(Map, OfAHostWithoutAMachineIsThatOfItsSeats) {
  const auto switched = std::make_shared<const Topology>(machine_of("switched-8.xml"));
  std::vector<ReportedLocation> locations = on_each_gpu(*switched);
  locations.resize(2);
  locations.push_back({.package = 1, .numa = 1});
  locations.push_back({.package = 0, .numa = 0});
  const std::vector hosts{0, 0, 2, 2};
  const std::vector<SharedMachine> machines{switched, switched, nullptr, nullptr};
  EXPECT_EQ(map_of(locations, hosts, machines).order, (std::vector<Rank>{0, 1, 3, 2}));
}

TEST(MachineText, GivesTheSameMapOnAnotherHost) {
  for (const char* name :
       {"cube-mesh-double.txt", "cube-mesh-single.txt", "switched-8.xml", "switched-8-one-off.xml",
        "all-to-all-4x1.txt", "all-to-all-4x3.txt", "all-to-all-8x1.txt", "hwloc-2gpu.xml", "template-fragment.xml"}) {
    const Topology machine = machine_of(name);
    const auto read = read_machine_text(machine_text(machine));
    ASSERT_TRUE(read) << name << ": " << read.error().text();
    const std::size_t ranks = std::max<std::size_t>(machine.gpus().size(), 2);
    // Rates of links are of use on one host alone, which knows its machine and needs no text.
    const auto without_rates = [](JobMap map) {
      map.pair_mbps.clear();
      return map;
    };
    EXPECT_EQ(without_rates(map_on(recorded(ranks), **read)), without_rates(map_on(recorded(ranks), machine))) << name;
    EXPECT_EQ(without_rates(map_on(on_each_gpu(machine), **read)), without_rates(map_on(on_each_gpu(machine), machine)))
        << name;
    EXPECT_EQ((*read)->nics().size(), machine.nics().size()) << name;
    EXPECT_EQ(machine_text(machine), machine_text(machine_of(name)));
  }
}

TEST(MachineText, DoesNotDependOnTheProcessOrTheHour) {
  Topology machine = machine_of("switched-8.xml");
  const std::string text = machine_text(machine);
  machine.origin = "live";
  machine.allowed_cpus = "0-3";
  machine.notes.push_back("NVML is slow today");
  topology::Device& gpu = machine[machine.gpus().front()];
  gpu.gbps_max = gpu.gbps;
  gpu.gbps /= 4;
  EXPECT_EQ(machine_text(machine), text);
  gpu.bus_id = "0000:ee:00.0";
  EXPECT_NE(machine_text(machine), text);
}

TEST(MachineText, ThatIsNoneIsRefused) {
  for (const char* text : {"", "<topology", "<topology version=\"2.0\"></topology>", "hello", "<system/>"}) {
    const auto read = read_machine_text(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::remote) << text;
  }
}

}  // namespace
}  // namespace tutti
