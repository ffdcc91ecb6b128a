// Do the specialised kernels give the bits of the plans they stand for, and only for those?
#include "kernels/one_shot.h"
#include "kernels/two_shot.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "algorithms/algorithm.h"
#include "exec/device_program.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "support/kernel_world.h"
#include "support/random.h"

namespace tutti {
namespace {

using namespace testing;
using device::Body;

std::vector<Plan> plans_of(const char* algorithm, Collective collective, int ranks, Access access) {
  const Shape shape{.collective = collective, .ranks = ranks};
  std::vector<Plan> plans = lower_all(find_algorithm(algorithm, shape)->build(shape), access);
  for (Plan& plan : plans) plan = fuse(std::move(plan), 1);
  return plans;
}

/// "" or what is wrong.
std::string run(KernelWorld& world, Body body, std::uint64_t seed, int threads) {
  if (world.launch().body != body) return "another kernel was chosen";
  bool stuck = false;
  const bool ended = run_on_fibers(world.launch(), {.threads = threads, .seed = seed, .on_deadlock = [&] {
                                                      stuck = true;
                                                      world.abort();
                                                    }});
  if (stuck) return "deadlock: " + world.error();
  if (!ended) return "some threads never end";
  if (const std::string error = world.error(); !error.empty()) return error;
  return world.compare();
}

class Shots : public ::testing::TestWithParam<Body> {
 protected:
  static std::vector<Plan> plans(int ranks) {
    return GetParam() == Body::two_shot ? plans_of("two_shot", Collective::all_reduce, ranks, Access::mapped)
                                        : plans_of("one_shot", Collective::all_reduce, ranks, Access::in_line);
  }
  static KernelWorld world(int ranks, const KernelCase& how) {
    if (GetParam() == Body::two_shot) return KernelWorld(plans(ranks), how);
    return KernelWorld(plans(ranks), plans_of("one_shot", Collective::all_reduce, ranks, Access::slots), how);
  }
};

TEST_P(Shots, GiveTheBitsOfTheirPlan) {
  Random random(test_seed());
  for (int ranks = 2; ranks <= 8; ++ranks) {
    for (int type = 0; type < device_type_count; ++type)
      for (int op = 0; op < device_op_count; ++op) {
        if (!random.chance(cases_percent())) continue;
        const int sizes[] = {0, 1, 9, 64, 150};
        const KernelCase how{.type = static_cast<DataType>(type),
                             .op = static_cast<ReduceOp>(op),
                             .count = static_cast<std::size_t>(sizes[random.below(5)]),
                             .channels = random.between(1, 2),
                             .misaligned = static_cast<std::size_t>(random.chance(30) ? 1 : 0),
                             .in_place = random.below(3),
                             .seed = random.next() % 1000000,
                             .apart = random.chance(50)};
        KernelWorld here = world(ranks, how);
        ASSERT_EQ(run(here, GetParam(), how.seed, random.between(1, 3)), "") << ranks << " ranks: " << how.text();
      }
  }
}

TEST_P(Shots, NameThePeerThatNeverComes) {
  for (const bool limited : {false, true}) {
    KernelWorld here = world(3, {.count = 16, .calls = 1, .together = true});
    here.call().synchronises = 1;
    here.call().limit_ns = limited ? 1'000'000'000 : 0;
    here.call().local_ranks = 2;  // the last is in a launch that never begins
    EXPECT_TRUE(run_on_fibers(here.launch(), {.on_deadlock = [&] { here.abort(); }}));
    for (int rank : {0, 1}) {
      EXPECT_NE(here.record(rank, 0).state, device::ErrorRecord::none);
      EXPECT_EQ(here.record(rank, 0).peer, 2u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Shots, ::testing::Values(Body::two_shot, Body::one_shot));

/// Launches of one rank each, of which one differs: all end, and each record holds both signatures.
TEST(OneShot, CallsThatDifferAreReported) {
  constexpr int ranks = 3;
  constexpr std::uint64_t same = 0x0123'4567'89ab'cdef, other = same ^ std::uint64_t{1} << 40;
  for (const bool fewer_channels : {false, true}) {
    KernelWorld world(plans_of("one_shot", Collective::all_reduce, ranks, Access::in_line),
                      {.count = 100, .channels = 2, .calls = 1, .together = true});
    std::vector<device::Call> calls(ranks, world.call());
    std::vector<std::thread> launches;
    for (int rank = 0; rank < ranks; ++rank) {
      device::Call& call = calls[static_cast<std::size_t>(rank)];
      call.local_ranks = 1;
      call.local[0] = world.call().local[rank];
      call.synchronises = 1;
      call.signature = rank == 1 ? other : same;
      if (rank == 1 && fewer_channels) call.channels = 1;
      launches.emplace_back(
          [&call] { run_on_threads({.body = Body::one_shot, .type = DataType::int32, .call = &call}, 2); });
    }
    for (std::thread& launch : launches) launch.join();
    for (int rank = 0; rank < ranks; ++rank) {
      const device::ErrorRecord& record = world.record(rank, 0);
      ASSERT_EQ(record.state, device::ErrorRecord::differs) << rank;
      EXPECT_EQ(record.peer, rank == 1 ? 0u : 1u);
      EXPECT_EQ(record.own, rank == 1 ? other : same);
      EXPECT_EQ(record.theirs, rank == 1 ? same : other);
    }
  }
}

TEST(OneShot, FlagsBeginAnewAfterTheirPeriod) {
  const auto plans = plans_of("one_shot", Collective::all_reduce, 3, Access::in_line);
  for (const std::uint64_t before : {0, 1, 2, 3}) {
    // What the inboxes hold is of calls long ago that had the flags which are next.
    KernelWorld world(plans, plans_of("one_shot", Collective::all_reduce, 3, Access::slots), {.count = 20, .calls = 5});
    world.set_inbox_uses(device::inbox_period - before);
    world.fill_inboxes(0xffffffff00000001u);
    EXPECT_EQ(run(world, Body::one_shot, 1 + before, 2), "") << before;
  }
}

TEST(KernelChoice, OnlyPlansThatSayJustThatAreSpecial) {
  const auto choice = [](const Plan& plan) {
    return kernel_for(plan, {.type = DataType::float32, .op = ReduceOp::sum, .split = Split(64, 4, plan.parts)});
  };
  const auto two_shot = plans_of("two_shot", Collective::all_reduce, 4, Access::mapped);
  for (const Plan& plan : two_shot) EXPECT_EQ(choice(plan).body, Body::two_shot);
  const auto edited = [&](auto edit) {
    Plan plan = two_shot[1];
    for (Action& action : plan.actions)
      if (action.verb == Verb::reduce) edit(plan, action);
    return choice(plan).body;
  };
  EXPECT_EQ(edited([](Plan&, Action&) {}), Body::two_shot);
  EXPECT_EQ(edited([](Plan& p, Action& a) { std::swap(p.places[a.first], p.places[a.first + 1]); }), Body::run_plan);
  EXPECT_EQ(edited([](Plan&, Action& a) { a.last = 0; }), Body::run_plan);
  EXPECT_EQ(edited([](Plan&, Action& a) { --a.destinations; }), Body::run_plan);
  EXPECT_EQ(edited([](Plan&, Action& a) { a.part = 0; }), Body::run_plan);
  EXPECT_EQ(edited([](Plan& p, Action& a) { p.places[a.first].contribution = 0; }), Body::run_plan);
  for (const char* other : {"ring", "halving_doubling"})
    for (const Plan& plan : plans_of(other, Collective::all_reduce, 4, Access::mapped))
      EXPECT_EQ(choice(plan).body, Body::run_plan) << other;
  for (const Plan& plan : plans_of("ring", Collective::all_gather, 4, Access::slots))
    EXPECT_EQ(choice(plan).type, DataType::uint8);
}

}  // namespace
}  // namespace tutti
