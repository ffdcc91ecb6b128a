// Are kernel bodies free of races? On real threads, with ThreadSanitizer where that is built in: all bulk data is
// plain.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "algorithms/algorithm.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "support/exchange_world.h"
#include "support/kernel_world.h"
#include "support/messages_world.h"

namespace tutti {
namespace {

using namespace testing;

struct Scene {
  const char* algorithm;
  Collective collective;
  Access access;
  int ranks;
};

std::vector<Plan> plans_of(const Scene& scene, Access access, int slots) {
  const Shape shape{.collective = scene.collective, .ranks = scene.ranks};
  std::vector<Plan> plans = lower_all(find_algorithm(scene.algorithm, shape)->build(shape), access);
  for (Plan& plan : plans) plan = fuse(std::move(plan), slots);
  return plans;
}

void run(const Scene& scene, const KernelCase& how) {
  const Access compared = scene.access == Access::in_line ? Access::slots : scene.access;
  KernelWorld world(plans_of(scene, scene.access, how.slots), plans_of(scene, compared, how.slots), how);
  run_on_threads(world.launch(), 2);
  EXPECT_EQ(world.error(), "");
  EXPECT_EQ(world.compare(), "") << scene.algorithm << ", " << name(scene.access) << ": " << how.text();
}

TEST(KernelThreads, PlansGiveTheBitsOfTheCpuExecutor) {
  const Scene scenes[] = {
      {"two_shot", Collective::all_reduce, Access::mapped, 2},
      {"two_shot", Collective::all_reduce, Access::mapped, 4},
      {"halving_doubling", Collective::all_reduce, Access::mapped, 3},
      {"ring", Collective::all_reduce, Access::slots, 3},
      {"ring", Collective::all_gather, Access::mapped, 3},
      {"binomial", Collective::broadcast, Access::slots, 4},
      {"pairwise", Collective::all_to_all, Access::slots, 3},
      {"one_shot", Collective::all_reduce, Access::in_line, 2},
      {"one_shot", Collective::all_reduce, Access::in_line, 4},
      {"dissemination", Collective::barrier, Access::slots, 3},
  };
  for (const Scene& scene : scenes)
    for (const DataType type : {DataType::float32, DataType::bfloat16})
      for (const int slots : {1, 2})
        run(scene, {.type = type,
                    .count = scene.collective == Collective::barrier ? std::size_t{0} : std::size_t{150},
                    .channels = 2,
                    .slots = slots,
                    .slot_bytes = 192,
                    .in_place = slots - 1,
                    .calls = 4,
                    .walk = scene.access != Access::in_line && type == DataType::bfloat16});
}

/// Plans through windows and through slots, of which the ranks choose.
TEST(KernelThreads, RanksChooseWindowsTogether) {
  for (const bool all : {true, false}) {
    const Scene slots{"ring", Collective::all_reduce, Access::slots, 3},
        windows{"two_shot", Collective::all_reduce, Access::mapped, 3};
    const auto by_slots = plans_of(slots, Access::slots, 2), by_windows = plans_of(windows, Access::mapped, 2);
    KernelWorld world(by_slots, all ? by_windows : by_slots,
                      {.count = 150, .slot_bytes = 192, .calls = 4, .apart = true, .walk = true});
    world.offer_windows(by_windows, all);
    run_on_threads(world.launch(), 2);
    EXPECT_EQ(world.error(), "");
    EXPECT_EQ(world.compare(), "") << all;
  }
}

TEST(KernelThreads, BlocksOfAnySizeAreExchanged) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    ExchangeWorld world(3, seed);
    for (int call = 0; call < 3; ++call) run_on_threads(world.launch(), 2);
    EXPECT_EQ(world.compare(), "") << seed;
  }
}

TEST(KernelThreads, EntriesAreFoundByName) {
  const Shape shape{.collective = Collective::all_reduce, .ranks = 2};
  std::vector<Plan> plans = lower_all(find_algorithm("two_shot", shape)->build(shape), Access::mapped);
  KernelWorld world(plans, {.count = 0, .calls = 1});
  EXPECT_TRUE(launch_by_name("tutti_run_plan_int32", world.call()));
  EXPECT_FALSE(launch_by_name("tutti_run_plan_int33", world.call()));
}

/// Sends and receives, by a launch of each rank.
TEST(KernelThreads, MessagesArrive) {
  constexpr int ranks[] = {0, 1, 2};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    MessagesWorld world(3, seed);
    for (int call = 0; call < 3; ++call) {
      world.forget();
      std::vector<std::thread> launches;
      for (const device::Call* const one : world.calls_of(ranks))
        launches.emplace_back([one] { run_on_threads({.type = DataType::uint8, .call = one}, 2); });
      for (std::thread& launch : launches) launch.join();
      EXPECT_EQ(world.compare(), "") << seed;
    }
  }
}

}  // namespace
}  // namespace tutti
