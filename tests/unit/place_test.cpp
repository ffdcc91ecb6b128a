// The map of a job: what is made of seats, and what of bytes.
#include <gtest/gtest.h>

#include <cstring>

#include "place/job_map.h"
#include "place/seats.h"

namespace tutti {
namespace {

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
  EXPECT_TRUE(map_of(seats, std::vector{0, 0, 2, 2}, nullptr).order.empty());
  EXPECT_EQ(map_of(seats, std::vector{0, 1, 2, 3}, nullptr), JobMap{}) << "a rank on each host: no level";
}

TEST(Map, TakesTheRingOfAFile) {
  const std::vector hosts{0, 1, 0, 1, 0, 1, 6};
  JobMap map = map_of(std::vector<OwnSeat>(7), hosts, nullptr);
  ASSERT_TRUE(take_ring(map, {0, 2, 1}, hosts));
  EXPECT_EQ(map.order, (std::vector<Rank>{0, 4, 2, 1, 5, 3, 6}));
  EXPECT_EQ(ring_of_first_host(map, hosts), (std::vector{0, 2, 1}));
  const auto refused = take_ring(map, {0, 1}, hosts);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::invalid_argument);

  const std::vector one_host{0, 0, 0};
  JobMap by_number;
  ASSERT_TRUE(take_ring(by_number, {0, 1, 2}, one_host));
  EXPECT_TRUE(by_number.order.empty());
  EXPECT_EQ(ring_of_first_host(by_number, one_host), (std::vector{0, 1, 2}));
}

TEST(Map, GoesThroughBytes) {
  const JobMap map{.levels = {{0, 0, 1, 1}, {0, 1, 2, 2}}, .order = {0, 2, 1, 3}};
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
  auto cut = to_bytes({.order = {0, 1, 2}});
  for (; !cut.empty(); cut.pop_back())
    EXPECT_EQ(static_cast<bool>(read_job_map(cut, 3)), cut.size() == 20) << cut.size();
  const std::uint32_t many[] = {0xffffffff, 1};
  EXPECT_FALSE(read_job_map(std::as_bytes(std::span(many)), 3));
}

}  // namespace
}  // namespace tutti
