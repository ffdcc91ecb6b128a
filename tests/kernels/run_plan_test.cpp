// Does the kernel that walks plans do what the CPU executor does, to the bit: every algorithm, through slots and
// windows, on a memory as weak as a GPU's, three calls in a row?
#include "kernels/run_plan.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "support/kernel_world.h"
#include "support/plan_writer.h"
#include "support/random.h"
#include "support/shapes.h"

namespace tutti {
namespace {

using namespace testing;

std::vector<Plan> plans_of(const Algorithm& algorithm, const Shape& shape, Access access, bool fused, int slots) {
  std::vector<Plan> plans = lower_all(algorithm.build(shape), access);
  if (fused)
    for (Plan& plan : plans) plan = fuse(std::move(plan), slots);
  return plans;
}

/// "" or what is wrong.
std::string run(KernelWorld& world, const KernelCase& how, int threads) {
  bool stuck = false;
  const bool ended = run_on_fibers(world.launch(), {.threads = threads, .seed = how.seed, .on_deadlock = [&] {
                                                      stuck = true;
                                                      world.abort();
                                                    }});
  if (stuck) return "deadlock: " + world.error();
  if (!ended) return "some threads never end";
  if (const std::string error = world.error(); !error.empty()) return error;
  return world.compare();
}

std::string run(const std::vector<Plan>& plans, const KernelCase& how, int threads) {
  KernelWorld world(plans, how);
  return run(world, how, threads);
}

constexpr int kinds = device_type_count * device_op_count;

/// The type and operator of that number; sizes, alignment and who is in place are drawn.
KernelCase some_case(const std::vector<Plan>& plans, int slots, int kind, Random& random) {
  const Plan& plan = plans[0];
  KernelCase how;
  how.type = static_cast<DataType>(kind % device_type_count);
  if (reduces(plan.collective)) how.op = static_cast<ReduceOp>(kind / device_type_count % device_op_count);
  const int sizes[] = {0, 1, 7, 16, 61, 130};
  how.count = plan.collective == Collective::barrier ? 0 : static_cast<std::size_t>(sizes[random.below(6)]);
  how.channels = random.between(1, 2);
  how.slots = slots;
  how.slot_bytes =
      static_cast<std::size_t>(std::max(plan.items_max, 1)) * 16 * static_cast<std::size_t>(random.between(1, 6));
  how.misaligned = static_cast<std::size_t>(random.chance(30) ? random.between(1, 3) : 0);
  how.in_place = random.below(3);
  how.together = random.chance(20);
  if (how.together) how.calls = 1;
  how.apart = !how.together && random.chance(50);
  how.walk = true;
  how.seed = random.next() % 1000000;
  return how;
}

class EveryAlgorithm : public ::testing::TestWithParam<int> {};

TEST_P(EveryAlgorithm, GivesTheBitsOfTheCpuExecutor) {
  const int ranks = GetParam();
  const char* more = std::getenv("TUTTI_TEST_KERNELS");
  const int samples = more != nullptr ? std::atoi(more) : 3;
  Random random(test_seed() + static_cast<std::uint64_t>(ranks));
  int ran = 0;
  for (const Algorithm& algorithm : algorithms())
    for (const Shape& shape : shapes(ranks))
      for (const Access access : {Access::mapped, Access::slots}) {
        if (shape.root > 1 || !algorithm.supports(shape) || !serves(algorithm, shape, access)) continue;
        for (int i = 0; i < samples; ++i) {
          if (!random.chance(cases_percent())) continue;
          const int slots = random.between(1, 3);
          const auto plans = plans_of(algorithm, shape, access, random.chance(80), slots);
          const int kind = samples >= kinds ? i : random.below(kinds);  // with so many, all of them
          const KernelCase how = some_case(plans, slots, kind, random);
          ASSERT_EQ(run(plans, how, random.between(1, 3)), "")
              << algorithm.name << ", " << text(shape) << ", " << name(access) << ": " << how.text();
          ++ran;
        }
      }
  EXPECT_GT(ran, 0);
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryAlgorithm, ::testing::Range(1, 9));

/// Where all ranks offer their buffers they go through windows, and where one does not, all go through slots.
TEST(RunPlan, RanksChooseWindowsTogether) {
  Random random(test_seed());
  const auto any = [&random](const Shape& shape, Access access) -> const Algorithm& {
    std::vector<const Algorithm*> all;
    for (const Algorithm& one : algorithms())
      if (one.supports(shape) && serves(one, shape, access)) all.push_back(&one);
    return *all[static_cast<std::size_t>(random.below(static_cast<int>(all.size())))];
  };
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                      Collective::broadcast, Collective::reduce, Collective::all_to_all})
    for (int ranks = 2; ranks <= 6; ++ranks) {
      const Shape shape{.collective = collective, .ranks = ranks, .root = ranks - 1};
      const Algorithm &slots = any(shape, Access::slots), &windows = any(shape, Access::mapped);
      const auto by_slots = plans_of(slots, shape, Access::slots, true, 2),
                 by_windows = plans_of(windows, shape, Access::mapped, true, 1);
      for (const bool all : {true, false})
        for (const bool once : {true, false}) {
          if (ranks > 3 && !random.chance(cases_percent())) continue;
          KernelCase how = some_case(by_slots, 2, random.below(kinds), random);
          if (how.op == ReduceOp::pre_mul_sum) how.op = ReduceOp::sum;  // through slots alone
          how.together = false;
          how.apart = true;
          how.once = once;
          how.channels = once ? 2 : 1;
          how.calls = once ? 1 : 3;
          KernelWorld world(by_slots, all ? by_windows : by_slots, how);
          world.offer_windows(by_windows, all);
          ASSERT_EQ(run(world, how, random.between(1, 3)), "")
              << text(shape) << ", " << slots.name << " or " << windows.name << ", " << all << ": " << how.text();
        }
    }
}

TEST(RunPlan, EveryTypeAndOperatorInOnePass) {
  const Shape shape{.collective = Collective::all_reduce, .ranks = 4};
  const auto plans = plans_of(*find_algorithm("two_shot", shape), shape, Access::mapped, true, 1);
  for (int type = 0; type < device_type_count; ++type)
    for (int op = 0; op < device_op_count; ++op)
      for (const std::size_t count : {5, 300})
        for (const std::size_t misaligned : {0, 1}) {
          const KernelCase how{.type = static_cast<DataType>(type),
                               .op = static_cast<ReduceOp>(op),
                               .count = count,
                               .misaligned = misaligned,
                               .calls = 1,
                               .seed = static_cast<std::uint64_t>(type * 10 + op),
                               .walk = true};
          EXPECT_EQ(run(plans, how, 2), "") << how.text();
        }
}

TEST(RunPlan, MoreActionsThanAreHeldAndMoreDestinationsThanAPassHas) {
  const Schedule schedule({.collective = Collective::broadcast, .ranks = 1}, 1);
  PlanWriter writer(schedule, 0, Access::mapped);
  std::vector<Place> many;
  for (int round = 0; round < 100; ++round) writer.copy(contributed(input(0)), {scratch(round)});
  writer.copy(scratch(99), {output(0)});
  Plan plan = writer.plan();
  plan.scratch_groups = 100;
  // And one pass with a hundred destinations.
  Action& wide = plan.actions[50];
  wide.first = static_cast<std::uint32_t>(plan.places.size());
  wide.destinations = 100;
  plan.places.push_back(contributed(input(0)));
  for (int to = 0; to < 100; ++to) plan.places.push_back(scratch(to));
  for (std::size_t i = 51; i < 100; ++i) plan.actions[i].destinations = 0;  // nobody else writes scratch 99
  EXPECT_EQ(run({plan}, {.count = 40}, 2), "");
}

TEST(RunPlan, APeerThatNeverComesIsNamed) {
  const Shape shape{.collective = Collective::all_reduce, .ranks = 2};
  for (const Access access : {Access::mapped, Access::slots})
    for (const bool limited : {false, true}) {
      auto plans = plans_of(*find_algorithm("ring", shape), shape, access, true, 1);
      plans[1].actions.clear();
      KernelWorld world(plans, {.count = 16, .slot_bytes = 64, .calls = 1, .together = true});
      world.call().limit_ns = limited ? 1'000'000'000 : 0;
      bool stuck = false;
      EXPECT_TRUE(run_on_fibers(world.launch(), {.on_deadlock = [&] {
                                  stuck = true;
                                  world.abort();
                                }}));
      EXPECT_EQ(stuck, !limited);
      const device::ErrorRecord& record = world.record(0, 0);
      EXPECT_EQ(record.state, limited ? device::ErrorRecord::late : device::ErrorRecord::aborted);
      EXPECT_EQ(record.peer, 1u);
      const Action& action = plans[0].actions[record.action];
      EXPECT_EQ(action.verb, access == Access::mapped ? Verb::wait : Verb::peek);
      EXPECT_EQ(record.verb, static_cast<std::uint32_t>(action.verb));
      EXPECT_EQ(record.step, action.step);
    }
}

}  // namespace
}  // namespace tutti
