// The map of a job: what is made of seats, and what of bytes.
#include <gtest/gtest.h>

#include <cstring>

#include "place/job_map.h"
#include "place/seats.h"

namespace tutti {
namespace {

using Orders = std::vector<std::vector<Rank>>;

/// Bound to a NUMA node of a machine with two nodes a package.
OwnSeat at_node(int numa) {
  return {.package = numa / 2, .numa = numa, .cache = numa * 8};
}

TEST(Map, OfUnboundRanksOfAHostIsOneGroup) {
  const std::vector<OwnSeat> seats(4);
  EXPECT_EQ(map_of(seats, std::vector{0, 0, 0, 0}, nullptr), JobMap{});
}

TEST(Map, HasPackagesAndNodesAndPutsNeighboursNextToEachOther) {
  std::vector<OwnSeat> seats;
  for (const int node : {0, 2, 1, 3, 0, 2, 1, 3}) seats.push_back(at_node(node));
  const JobMap map = map_of(seats, std::vector(8, 0), nullptr);
  EXPECT_EQ(map.levels, (std::vector<Level>{{0, 1, 0, 1, 0, 1, 0, 1}, {0, 1, 2, 3, 0, 1, 2, 3}}));
  EXPECT_EQ(map.order, (std::vector<Rank>{0, 4, 2, 6, 1, 5, 3, 7}));
}

TEST(Map, KeepsHostsTogetherWhateverTheirRanksAre) {
  const std::vector<OwnSeat> seats(4);
  const JobMap map = map_of(seats, std::vector{0, 1, 0, 1}, nullptr);
  EXPECT_EQ(map.levels, (std::vector<Level>{{0, 1, 0, 1}}));
  EXPECT_EQ(map.order, (std::vector<Rank>{0, 2, 1, 3}));
  EXPECT_EQ(map.rings, (Orders{{0, 2, 1, 3}, {2, 0, 3, 1}}));
  EXPECT_TRUE(map_of(seats, std::vector{0, 0, 2, 2}, nullptr).order.empty());
  EXPECT_EQ(map_of(seats, std::vector{0, 1, 2, 3}, nullptr), JobMap{}) << "a rank on each host: no level";
}

TEST(Map, TakesTheRingsOfAFile) {
  const std::vector hosts{0, 1, 0, 1, 0, 1, 6};
  JobMap map = map_of(std::vector<OwnSeat>(7), hosts, nullptr);
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
    std::uint32_t many[] = {0, 0, 0};
    many[at] = 0xffffffff;
    EXPECT_FALSE(read_job_map(std::as_bytes(std::span(many)), 3)) << at;
  }
}

TEST(Map, HasRoomInAMessageOfTheStart) {
  for (const int ranks : {1, 8, 300, 1000, 2000, 4000, 60000}) {
    JobMap map{.levels = std::vector<Level>(3, Level(static_cast<std::size_t>(ranks)))};
    const std::size_t rings = rings_that_fit(map, static_cast<std::size_t>(ranks));
    EXPECT_LE(rings, ranks <= 2000 ? rings_max : 0u) << ranks;
    EXPECT_GE(rings, ranks <= 1000 ? rings_max : ranks <= 2000 ? 2u : 0u) << ranks;
    map.order.resize(static_cast<std::size_t>(ranks));
    map.rings.assign(rings, map.order);
    if (rings > 0) {
      EXPECT_LE(to_bytes(map).size(), 50'000u);
    }
  }
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
