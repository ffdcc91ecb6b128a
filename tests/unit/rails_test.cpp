// Rings through the hosts of recorded machines: does each pass all ranks, every host once, and by a door of its own?
#include "place/rails.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "place/job_file.h"
#include "topology/graph/path.h"
#include "topology/search/placement.h"
#include "topology/sources/read.h"

namespace tutti {
namespace {

using Orders = std::vector<std::vector<Rank>>;

constexpr const char* machines[] = {"cube-mesh-double.txt", "cube-mesh-single.txt",   "all-to-all-8x1.txt",
                                    "switched-8.xml",       "switched-8-one-off.xml", "hwloc-4x6-divided.xml"};

topology::Topology recorded(const std::string& name) {
  auto machine = topology::read_machine(std::string(TUTTI_TEST_MACHINES "/") + name);
  EXPECT_TRUE(machine) << name;
  return machine ? *std::move(machine) : topology::Topology{};
}

/// Ranks at which each ring enters a host, and from which it leaves one, by host.
struct Doors {
  std::map<int, std::vector<Rank>> in, out;
};

Doors doors_in(const Orders& rings, const std::vector<int>& hosts) {
  Doors doors;
  for (const auto& ring : rings)
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const Rank from = ring[i], to = ring[(i + 1) % ring.size()];
      const int left = hosts[static_cast<std::size_t>(from)], entered = hosts[static_cast<std::size_t>(to)];
      if (left == entered) continue;
      doors.out[left].push_back(from);
      doors.in[entered].push_back(to);
    }
  return doors;
}

bool all_differ(const std::vector<Rank>& ranks) {
  return std::set<Rank>(ranks.begin(), ranks.end()).size() == ranks.size();
}

void expect_permutations(const Orders& rings, int ranks) {
  std::vector<Rank> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  for (const auto& ring : rings) EXPECT_TRUE(std::ranges::is_permutation(ring, all));
}

TEST(Rails, EnterEveryHostOnceAndByDifferentRanks) {
  for (const char* name : machines) {
    SCOPED_TRACE(name);
    const topology::Topology machine = recorded(name);
    // Hosts filled one after the other, and in turn.
    for (const bool in_turn : {false, true}) {
      PlannedJob planned{.hosts = 4, .ranks_per_host = 8};
      for (Rank i = 0; in_turn && i < 32; ++i) planned.filling.push_back(i % 8 * 4 + i / 8);
      const std::vector<int> hosts = hosts_of(planned);
      const JobMap map = map_of(planned, &machine);
      ASSERT_EQ(map.rings.size(), 8u);
      expect_permutations(map.rings, 32);
      const Doors doors = doors_in(map.rings, hosts);
      ASSERT_EQ(doors.in.size(), 4u);
      for (const auto* sides : {&doors.in, &doors.out})
        for (const auto& [host, ranks] : *sides) EXPECT_EQ(ranks.size(), 8u) << "once per ring";
      for (const auto& [host, ranks] : doors.in) EXPECT_TRUE(all_differ(ranks)) << host;
      // Where a host has one ring alone, they also leave by different ranks.
      if (map_of({.hosts = 1, .ranks_per_host = 8}, &machine).rings.empty()) {
        for (const auto& [host, ranks] : doors.out) EXPECT_TRUE(all_differ(ranks)) << host;
      }
    }
  }
}

TEST(Rails, InsideAHostFollowTheRingsOfItsLinks) {
  for (const char* name : machines) {
    SCOPED_TRACE(name);
    const topology::Topology machine = recorded(name);
    const Orders one = map_of({.hosts = 1, .ranks_per_host = 8}, &machine).rings;
    const std::vector<int> gpus = machine.gpus();
    const auto found = topology::channels_of(machine, std::span(gpus).first(8)).orders;
    std::set<std::vector<int>> distinct(found.begin(), found.end());
    EXPECT_EQ(one.size(), distinct.size() < 2 ? 0 : std::min(distinct.size(), rings_max));
    expect_permutations(one, 8);
    const auto hops = [](const Orders& rings) {
      std::set<std::pair<Rank, Rank>> pairs;
      for (const auto& ring : rings)
        for (std::size_t i = 0; i < ring.size(); ++i) pairs.insert({ring[i], ring[(i + 1) % ring.size()]});
      return pairs;
    };
    const auto allowed = hops(found);
    for (const auto& hop : hops(one)) EXPECT_TRUE(allowed.contains(hop));
    for (const auto& [from, to] : hops(map_of({.hosts = 3, .ranks_per_host = 8}, &machine).rings))
      EXPECT_TRUE(from / 8 != to / 8 || allowed.contains({from % 8, to % 8})) << from << " to " << to;
  }
}

TEST(Rails, EnterByTheRankNearestToANic) {
  const topology::Topology machine = recorded("switched-8.xml");
  const std::vector<int> gpus = machine.gpus();
  std::vector<int> nics = machine.nics();
  std::erase_if(nics, [&](int nic) { return machine[nic].network_gbps < 10; });  // one is for other purposes
  ASSERT_EQ(nics.size(), 8u);
  const std::vector<int> doors = entry_ranks_of(&machine, gpus, 8);
  EXPECT_TRUE(all_differ(doors));
  const auto kind = [&](int gpu, int nic) { return static_cast<int>(topology::path(machine, gpu, nic).kind); };
  for (std::size_t ring = 0; ring < 8; ++ring)
    for (const int gpu : gpus)
      EXPECT_LE(kind(gpus[static_cast<std::size_t>(doors[ring])], nics[ring]), kind(gpu, nics[ring])) << ring;
}

TEST(Rails, WithoutNicsAreSpreadEvenly) {
  EXPECT_EQ(entry_ranks_of(nullptr, std::vector(8, -1), 4), (std::vector{0, 2, 4, 6}));
  EXPECT_EQ(entry_ranks_of(nullptr, std::vector(3, -1), 3), (std::vector{0, 1, 2}));
}

TEST(Rails, NeedHostsOfSeveralRanks) {
  EXPECT_TRUE(map_of({.hosts = 4, .ranks_per_host = 1}, nullptr).rings.empty());
  EXPECT_TRUE(map_of({.hosts = 1, .ranks_per_host = 8}, nullptr).rings.empty());
  EXPECT_EQ(map_of({.hosts = 2, .ranks_per_host = 3}, nullptr).rings,
            (Orders{{0, 1, 2, 3, 4, 5}, {1, 2, 0, 4, 5, 3}, {2, 0, 1, 5, 3, 4}}));
  EXPECT_TRUE(map_of({.hosts = 2000, .ranks_per_host = 8}, nullptr).rings.empty()) << "the map would be too long";
}

TEST(Rails, LeaveByDifferentRanksWhereAHostHasAChoice) {
  const Orders orders{{0, 1, 2, 3}, {0, 3, 2, 1}};
  const HostRings host{.orders = orders, .entry_ranks = {0, 2}};
  EXPECT_EQ(rings_through(std::vector{host}), (Orders{{0, 1, 2, 3}, {2, 3, 0, 1}}))
      << "the second ring would end at 3 as the first does";
}

}  // namespace
}  // namespace tutti
