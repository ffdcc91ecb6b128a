// A host dies while the ranks of a communicator still look for each other: all others hear of it soon.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "simulated/hosts_world.h"
#include "support/seeds.h"

namespace tutti {
namespace {

constexpr std::uint64_t seed_count = 30;
constexpr std::int64_t told_ns = 2 * second_ns;  // a proven death, as reliability promises

/// How many turns a start takes that nothing happens to; the same seed makes the same turns.
int turns_of_a_start(std::uint64_t seed) {
  HostsWorld world(seed);
  world.begin();
  std::vector<Ended> ended(world.starting.size());
  int turns = 0;
  for (; std::ranges::any_of(ended, [](const Ended& one) { return !one; }); ++turns) world.turn(world.starting, ended);
  return turns;
}

/// What all ranks have for a map, told in parts of so many bytes.
JobMap map_of_start(std::uint64_t seed, std::size_t part_bytes) {
  HostsWorld world(seed);
  world.map_part_bytes = part_bytes;
  EXPECT_TRUE(world.start());
  if (world.made.empty()) return {};
  JobMap map = world.made.front()->members().map;
  for (const auto& communicator : world.made) EXPECT_EQ(communicator->members().map, map);
  world.stop();
  return map;
}

TEST(SimulatedStart, TellsALongMapInParts) {
  int with_levels = 0;
  for (const std::uint64_t seed : seeds(10)) {
    SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(seed));
    const JobMap map = map_of_start(seed, 0);
    with_levels += map.levels.empty() ? 0 : 1;
    for (const std::size_t part_bytes : {1, 3, 8}) EXPECT_EQ(map_of_start(seed, part_bytes), map) << part_bytes;
  }
  EXPECT_GT(with_levels, 0);
}

TEST(SimulatedStart, ADeathInItsMidstIsToldSoonToAllSurvivors) {
  int failed = 0;
  for (const std::uint64_t seed : seeds(seed_count)) {
    SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(seed));
    const int turns = turns_of_a_start(seed);
    HostsWorld world(seed);
    world.begin();
    std::vector<Ended> ended(world.starting.size());
    std::mt19937_64 random(seed);
    // By then all have met; from there to the end.
    const auto until = turns / 2 + static_cast<int>(random() % static_cast<std::uint64_t>(turns / 2));
    for (int turn = 0; turn < until; ++turn) world.turn(world.starting, ended);
    const int lost = (world.host_of[0] + 1) % static_cast<int>(world.processes.size());
    world.dead.insert(lost);
    world.system.kill(lost);
    for (std::size_t rank = 0; rank < ended.size(); ++rank)
      if (world.host_of[rank] == lost) world.starting[rank] = nullptr;
    const std::int64_t killed_ns = world.system.now_ns();
    const auto waits = [&] {
      for (std::size_t rank = 0; rank < ended.size(); ++rank)
        if (world.starting[rank] != nullptr && !ended[rank]) return true;
      return false;
    };
    while (waits() && world.system.now_ns() < killed_ns + told_ns) world.turn(world.starting, ended);
    for (std::size_t rank = 0; rank < ended.size(); ++rank) {
      if (world.starting[rank] == nullptr) continue;
      ASSERT_TRUE(ended[rank]) << "rank " << rank << " was not told";
      if (*ended[rank]) continue;  // it was through already
      ++failed;
      EXPECT_NE(ended[rank]->error().text().find("rank"), std::string::npos) << ended[rank]->error().text();
    }
  }
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace tutti
