// The map of a job: what is made of locations, and what of bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <random>

#include "place/host_groups.h"
#include "place/job_map.h"
#include "place/locations.h"
#include "place/packed_words.h"

namespace tutti {
namespace {

using Orders = std::vector<std::vector<Rank>>;

/// Bound to a NUMA node of a machine with two nodes a package.
ReportedLocation at_node(int numa) {
  return {.package = numa / 2, .numa = numa, .cache = numa * 8};
}

TEST(Map, OfUnboundRanksOfAHostIsOneGroup) {
  const std::vector<ReportedLocation> locations(4);
  EXPECT_EQ(map_of(locations, std::vector{0, 0, 0, 0}, nullptr), JobMap{});
}

TEST(Map, HasPackagesAndNodesAndPutsNeighboursNextToEachOther) {
  std::vector<ReportedLocation> locations;
  for (const int node : {0, 2, 1, 3, 0, 2, 1, 3}) locations.push_back(at_node(node));
  const JobMap map = map_of(locations, std::vector(8, 0), nullptr);
  EXPECT_EQ(map.levels, (std::vector<Level>{{0, 1, 0, 1, 0, 1, 0, 1}, {0, 1, 2, 3, 0, 1, 2, 3}}));
  EXPECT_EQ(map.order, (std::vector<Rank>{0, 4, 2, 6, 1, 5, 3, 7}));
}

TEST(Map, KeepsHostsTogetherWhateverTheirRanksAre) {
  const std::vector<ReportedLocation> locations(4);
  const JobMap map = map_of(locations, std::vector{0, 1, 0, 1}, nullptr);
  EXPECT_EQ(map.levels, (std::vector<Level>{{0, 1, 0, 1}}));
  EXPECT_EQ(map.order, (std::vector<Rank>{0, 2, 1, 3}));
  EXPECT_EQ(map.rings, (Orders{{0, 2, 1, 3}, {2, 0, 3, 1}}));
  EXPECT_TRUE(map_of(locations, std::vector{0, 0, 2, 2}, nullptr).order.empty());
  EXPECT_EQ(map_of(locations, std::vector{0, 1, 2, 3}, nullptr), JobMap{}) << "a rank on each host: no level";
}

/// A rank on each host, which says that it is there.
std::vector<ReportedLocation> in(const std::vector<std::string>& groups) {
  std::vector<ReportedLocation> locations;
  for (const std::string& text : groups) {
    const auto told = host_groups(text);
    EXPECT_TRUE(told) << text;
    locations.push_back({.groups = told ? *told : HostGroups{}});
  }
  return locations;
}

TEST(Map, HasGroupsOfHostsAsLevels) {
  const std::vector hosts{0, 1, 2, 3, 4, 5};
  const JobMap racks = map_of(in({"a", "b", "a", "b", "c", "a"}), hosts, nullptr);
  EXPECT_EQ(racks.levels, (std::vector<Level>{{0, 1, 0, 1, 2, 0}}));
  EXPECT_EQ(racks.order, (std::vector<Rank>{0, 2, 5, 1, 3, 4})) << "hosts of a rack are next to each other";
  // Rack 1 of one pod is another than rack 1 of the other, and hosts with two ranks are a level below.
  const JobMap pods = map_of(in({"p/1", "q/1", "p/1", "q/2", "p/1", "q/1", "p/1", "q/2"}),
                             std::vector{0, 1, 2, 3, 0, 1, 2, 3}, nullptr);
  EXPECT_EQ(pods.levels,
            (std::vector<Level>{{0, 1, 0, 1, 0, 1, 0, 1}, {0, 1, 0, 2, 0, 1, 0, 2}, {0, 1, 2, 3, 0, 1, 2, 3}}));
  EXPECT_EQ(pods.order, (std::vector<Rank>{0, 4, 2, 6, 1, 5, 3, 7}));
}

TEST(Map, LeavesOutGroupsThatTellNothing) {
  const std::vector hosts{0, 0, 2, 2};
  const JobMap without = map_of(in({"", "", "", ""}), hosts, nullptr);
  EXPECT_EQ(map_of(in({"a", "a", "a", "a"}), hosts, nullptr), without) << "one rack";
  EXPECT_EQ(map_of(in({"a", "a", "b", "b"}), hosts, nullptr), without) << "a rack for each host";
  EXPECT_EQ(map_of(in({"a", "b", "b", "a"}), hosts, nullptr), without) << "the first rank speaks for its host";
  EXPECT_EQ(map_of(in({"a", "", "b", ""}), std::vector{0, 1, 2, 3}, nullptr).levels, (std::vector<Level>{{0, 1, 2, 1}}))
      << "hosts without a name are together";
}

TEST(Map, TakesTheRingsOfAFileRackByRack) {
  const std::vector hosts{0, 0, 2, 2, 4, 4};
  JobMap map = map_of(in({"a", "a", "b", "b", "a", "a"}), hosts, nullptr);
  EXPECT_EQ(map.order, (std::vector<Rank>{0, 1, 4, 5, 2, 3}));
  ASSERT_TRUE(take_rings(map, {{1, 0}}, hosts));
  EXPECT_EQ(map.order, (std::vector<Rank>{1, 0, 5, 4, 3, 2}));
}

TEST(HostGroups, AreNamesWithinEachOther) {
  EXPECT_EQ(*host_groups(""), HostGroups{});
  const HostGroups rack = *host_groups("pod2/rack7");
  EXPECT_EQ(rack, *host_groups("pod2/rack7"));
  EXPECT_EQ(rack[0], (*host_groups("pod2"))[0]);
  EXPECT_NE(rack[1], (*host_groups("pod3/rack7"))[1]);
  EXPECT_NE((*host_groups("ab/c"))[1], (*host_groups("a/bc"))[1]);
  EXPECT_EQ(rack[2], 0u);
  for (const char* bad : {"/", "a/", "/a", "a//b", "a/b/c/d"}) {
    const auto refused = host_groups(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, Code::invalid_argument);
    EXPECT_NE(refused.error().what.find("TUTTI_TOPO_GROUPS=" + std::string(bad)), std::string::npos);
  }
}

TEST(HostGroups, AreTheSwitchesThatSlurmNames) {
  const HostGroups switches = host_groups_of_slurm("s0.s4.node12", "switch.switch.node");
  EXPECT_EQ(switches, *host_groups("s0/s4"));
  EXPECT_EQ(host_groups_of_slurm("s0.s4.node12.example.org", "switch.switch.node"), switches);
  EXPECT_EQ(host_groups_of_slurm("node12", "node"), HostGroups{}) << "a flat network";
  EXPECT_EQ(host_groups_of_slurm("", ""), HostGroups{});
  EXPECT_EQ(host_groups_of_slurm("s0.node", "switch.switch.node"), HostGroups{}) << "they do not fit";
  EXPECT_EQ(host_groups_of_slurm("a.b", "switch.switch"), HostGroups{});
  const HostGroups deep = host_groups_of_slurm("a.b.c.d.n", "switch.switch.switch.switch.node");
  EXPECT_NE(deep, host_groups_of_slurm("x.b.c.d.n", "switch.switch.switch.switch.node")) << "of another tree";
  EXPECT_NE(deep[2], 0u);
}

TEST(Map, TakesTheRingsOfAFile) {
  const std::vector hosts{0, 1, 0, 1, 0, 1, 6};
  JobMap map = map_of(std::vector<ReportedLocation>(7), hosts, nullptr);
  ASSERT_TRUE(take_rings(map, {{0, 2, 1}}, hosts));
  EXPECT_EQ(map.order, (std::vector<Rank>{0, 4, 2, 1, 5, 3, 6}));
  EXPECT_TRUE(map.rings.empty()) << "one ring is the order";
  EXPECT_EQ(rings_of_first_host(map, hosts), (Orders{{0, 2, 1}}));
  ASSERT_TRUE(take_rings(map, {{0, 1, 2}, {1, 0, 2}, {2, 0, 1}}, hosts));
  EXPECT_EQ(map.order, (std::vector<Rank>{0, 2, 4, 1, 3, 5, 6}));
  EXPECT_EQ(map.rings, (Orders{{0, 2, 4, 1, 3, 5, 6}, {2, 0, 4, 3, 1, 5, 6}, {4, 0, 2, 5, 1, 3, 6}}));
  EXPECT_EQ(rings_of_first_host(map, hosts), (Orders{{0, 1, 2}, {1, 0, 2}, {2, 0, 1}}));
  const auto refused = take_rings(map, {{0, 1}}, hosts);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::invalid_argument);

  const std::vector one_host{0, 0, 0};
  JobMap by_number;
  ASSERT_TRUE(take_rings(by_number, {{0, 1, 2}}, one_host));
  EXPECT_TRUE(by_number.order.empty());
  EXPECT_EQ(rings_of_first_host(by_number, one_host), (Orders{{0, 1, 2}}));
}

TEST(Map, GoesThroughBytes) {
  JobMap map{.levels = {{0, 0, 1, 1}, {0, 1, 2, 2}}, .order = {0, 2, 1, 3}};
  EXPECT_EQ(*read_job_map(to_bytes(map), 4), map);
  map.rings = {{0, 2, 1, 3}, {3, 0, 2, 1}, {1, 2, 3, 0}};
  EXPECT_EQ(*read_job_map(to_bytes(map), 4), map);
  map.order.clear();
  EXPECT_EQ(*read_job_map(to_bytes(map), 4), map);
  EXPECT_EQ(*read_job_map(to_bytes({}), 4), JobMap{});
}

TEST(Map, OfBytesThatAreNoneIsRefused) {
  const auto refused = [](const JobMap& map, int ranks) {
    const auto read = read_job_map(to_bytes(map), ranks);
    return !read && read.error().code == Code::remote;
  };
  EXPECT_TRUE(refused({.levels = {{0, 1}}}, 3)) << "too short";
  EXPECT_TRUE(refused({.levels = {{0, 3, 0}}}, 3)) << "no such group";
  EXPECT_TRUE(refused({.levels = {{0, -1, 0}}}, 3)) << "no such group";
  EXPECT_TRUE(refused({.levels = {{0, 0, 1}, {0, 1, 1}}}, 3)) << "the second level crosses the first";
  EXPECT_TRUE(refused({.order = {0, 1, 1}}, 3)) << "rank 2 is not named";
  EXPECT_TRUE(refused({.order = {0, 1, 3}}, 3));
  EXPECT_TRUE(refused({.rings = {{0, 1, 2}, {0, 1, 1}}}, 3)) << "rank 2 is not named";
  EXPECT_TRUE(refused({.rings = {{0, 1, 2}, {0, -1, 1}}}, 3));
  EXPECT_TRUE(refused({.rings = Orders(rings_max + 1, {0, 1, 2})}, 3)) << "too many rings";
  EXPECT_FALSE(refused({.rings = Orders(rings_max, {0, 1, 2})}, 3));
  for (const JobMap& map : {JobMap{.order = {0, 1, 2}}, JobMap{.rings = {{0, 1, 2}}}}) {
    auto cut = to_bytes(map);
    for (const std::size_t whole = cut.size(); !cut.empty(); cut.pop_back())
      EXPECT_EQ(static_cast<bool>(read_job_map(cut, 3)), cut.size() == whole) << cut.size();
  }
  for (const std::size_t at : {0u, 1u, 2u}) {
    std::uint32_t many[] = {0, 0, 0, 0};
    many[at] = 0xffffffff;
    EXPECT_FALSE(read_job_map(packed(many), 3)) << at;
  }
}

TEST(Map, HasFewerRingsTheMoreRanksThereAre) {
  for (const int ranks : {1, 8, 300, 1000, 2000, 4000, 60000}) {
    const JobMap map{.levels = std::vector<Level>(3, Level(static_cast<std::size_t>(ranks)))};
    const std::size_t rings = rings_that_fit(map, static_cast<std::size_t>(ranks));
    EXPECT_LE(rings, ranks <= 2000 ? rings_max : 0u) << ranks;
    EXPECT_GE(rings, ranks <= 1000 ? rings_max : ranks <= 2000 ? 2u : 0u) << ranks;
  }
}

constexpr int many_ranks = 24'576;

/// Four levels and an order of jobs with 8 ranks a host, 16 hosts a rack: `place` says where each rank sits.
JobMap map_at(const std::vector<int>& place) {
  JobMap map;
  for (const int ranks_of_group : {128, 8, 4, 2}) {
    std::map<int, int> numbers;
    Level& level = map.levels.emplace_back();
    for (const int at : place)
      level.push_back(numbers.try_emplace(at / ranks_of_group, static_cast<int>(numbers.size())).first->second);
  }
  map.order.resize(place.size());
  for (std::size_t rank = 0; rank < place.size(); ++rank)
    map.order[static_cast<std::size_t>(place[rank])] = static_cast<Rank>(rank);
  return map;
}

TEST(Map, OfManyRanksGoesThroughBytes) {
  std::vector<int> blocks(many_ranks), in_turn(many_ranks), random(many_ranks);
  for (int rank = 0; rank < many_ranks; ++rank) {
    blocks[static_cast<std::size_t>(rank)] = random[static_cast<std::size_t>(rank)] = rank;
    in_turn[static_cast<std::size_t>(rank)] = rank % (many_ranks / 8) * 8 + rank / (many_ranks / 8);
  }
  std::ranges::shuffle(random, std::mt19937(7));
  for (const auto& [place, bytes] : {std::pair(blocks, 300u), std::pair(in_turn, 300u), std::pair(random, 500'000u)}) {
    const JobMap map = map_at(place);
    const auto told = to_bytes(map);
    EXPECT_LE(told.size(), bytes);
    EXPECT_LE(told.size(), map_bytes_max(many_ranks));
    const auto read = read_job_map(told, many_ranks);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(*read, map);
    EXPECT_FALSE(read_job_map(told, many_ranks - 1));
    EXPECT_FALSE(read_job_map(std::span(told).first(told.size() - 1), many_ranks));
  }
}

TEST(PackedWords, AreUnpacked) {
  std::mt19937 random(1);
  for (int round = 0; round < 2'000; ++round) {
    std::vector<std::uint32_t> words(random() % 60);
    const std::uint32_t values = round % 3 == 0 ? 2 : round % 3 == 1 ? 100 : 0xffff'ffff;
    for (std::uint32_t& word : words) word = random() % values * (values == 0xffff'ffff ? 1 : 0x4000'0000);
    if (words.size() > 20) std::copy_n(words.begin(), 10, words.end() - 10);
    const auto bytes = packed(words);
    EXPECT_LE(bytes.size(), 6 * words.size());
    const auto again = unpacked(bytes, words.size());
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(*again, words);
    if (!words.empty()) {
      EXPECT_FALSE(unpacked(bytes, words.size() - 1)) << "more than was allowed";
    }
  }
}

TEST(PackedWords, ThatAreNoneAreRefused) {
  const auto refused = [](std::initializer_list<unsigned> bytes) {
    std::vector<std::byte> packed_bytes;
    for (const unsigned byte : bytes) packed_bytes.push_back(static_cast<std::byte>(byte));
    const auto words = unpacked(packed_bytes, 1'000);
    return !words && words.error().code == Code::remote;
  };
  EXPECT_FALSE(refused({2 << 1, 1, 2}));
  EXPECT_TRUE(refused({0})) << "no numbers";
  EXPECT_TRUE(refused({2 << 1, 1})) << "cut off";
  EXPECT_TRUE(refused({0x80})) << "cut off";
  EXPECT_TRUE(refused({1 << 1, 1, 2 << 1 | 1, 0})) << "a copy of itself";
  EXPECT_TRUE(refused({1 << 1, 1, 2 << 1 | 1, 2})) << "a copy of what was before the first";
  EXPECT_TRUE(refused({2 << 1 | 1, 1})) << "a copy of nothing";
  EXPECT_TRUE(refused({1 << 1, 0xff, 0xff, 0xff, 0xff, 0x7f})) << "more than 32 bits";
  EXPECT_TRUE(refused({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})) << "more than 64 bits";
  EXPECT_TRUE(refused({1 << 1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 1})) << "billions of copies";
}

TEST(Map, ShowsItsRings) {
  EXPECT_EQ(text_of({.levels = {{0, 0, 1, 1}}, .rings = {{0, 1, 2, 3}, {1, 0, 3, 2}}}),
            "2 groups; 2 rings: 0 1 2 3 | 1 0 3 2");
}

TEST(JobMap, CarriesTheRatesOfPairs) {
  JobMap map;
  map.pair_mbps = {0, 1000, 2000, 3000, 0, 500, 600, 700, 0};
  const auto read = read_job_map(to_bytes(map), 3);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read, map);
  EXPECT_FALSE(read_job_map(to_bytes(map), 4)) << "rates of three ranks";
  map.pair_mbps.resize(17 * 17);
  EXPECT_FALSE(read_job_map(to_bytes(map), 17)) << "so many pairs are of no use";
}

}  // namespace
}  // namespace tutti
