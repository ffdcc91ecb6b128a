// Do the tests of kernels notice what could be wrong with one? Each breakage on the list is built into the body.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "algorithms/algorithm.h"
#include "kernels/one_shot.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "support/kernel_world.h"
#include "support/shapes.h"

namespace tutti {
namespace {

using namespace testing;
using device::Fault;

struct Scene {
  const char* algorithm;
  Collective collective;
  Access access;
  int ranks;
};
constexpr Scene walked[] = {
    {"two_shot", Collective::all_reduce, Access::mapped, 3},
    {"halving_doubling", Collective::all_reduce, Access::mapped, 4},
    {"ring", Collective::all_reduce, Access::slots, 3},
    {"pairwise", Collective::all_to_all, Access::slots, 3},
};
constexpr Scene two_shot[] = {{"two_shot", Collective::all_reduce, Access::mapped, 3}};
constexpr Scene one_shot[] = {{"one_shot", Collective::all_reduce, Access::in_line, 3}};

std::vector<Plan> plans_of(const Scene& scene, Access access) {
  const Shape shape{.collective = scene.collective, .ranks = scene.ranks};
  std::vector<Plan> plans = lower_all(find_algorithm(scene.algorithm, shape)->build(shape), access);
  for (Plan& plan : plans) plan = fuse(std::move(plan), 2);
  return plans;
}

/// Whether the world's launch, with that breakage, comes to the right end.
bool comes_right(KernelWorld& world, Fault fault, std::uint64_t seed) {
  bool stuck = false;
  const FiberOptions options{.threads = 3, .seed = seed, .on_deadlock = [&] {
                               stuck = true;
                               world.abort();
                             }};
  const bool ended =
      fault == Fault::none ? run_on_fibers(world.launch(), options) : run_on_fibers(world.launch(), options, fault);
  return ended && !stuck && world.error().empty() && world.compare().empty();
}

/// Whether a launch with that breakage comes to the right end.
bool comes_right(const Scene& scene, bool walk, Fault fault, std::uint64_t seed) {
  const Access compared = scene.access == Access::in_line ? Access::slots : scene.access;
  KernelWorld world(
      plans_of(scene, scene.access), plans_of(scene, compared),
      {.count = 100, .channels = 2, .slot_bytes = 128, .calls = 4, .seed = seed, .apart = true, .walk = walk});
  if (scene.access == Access::in_line) {  // flags begin anew, and inboxes still hold the first of the last time
    world.set_inbox_uses(device::inbox_period);
    world.fill_inboxes(0x00000001'00000000u);
  }
  return comes_right(world, fault, seed);
}

/// The same where ranks have plans through windows, too, but one does not offer its buffers.
bool chooses_right(Fault fault, std::uint64_t seed) {
  const Scene slots{"ring", Collective::all_reduce, Access::slots, 3};
  const auto plans = plans_of(slots, Access::slots);
  KernelWorld world(plans, {.count = 100, .channels = 1, .slot_bytes = 128, .seed = seed, .apart = true, .walk = true});
  world.offer_windows(plans_of(two_shot[0], Access::mapped), /*all=*/false);
  return comes_right(world, fault, seed);
}

/// The same where one rank never comes: right is that all blocks end.
bool gives_up(Fault fault, std::uint64_t seed) {
  std::vector<Plan> plans = plans_of(walked[2], Access::slots);
  plans[1].actions.clear();
  KernelWorld world(plans, {.count = 100, .calls = 1, .seed = seed, .together = true, .walk = true});
  const FiberOptions options{.threads = 3, .seed = seed, .on_deadlock = [&] { world.abort(); }};
  const bool ended =
      fault == Fault::none ? run_on_fibers(world.launch(), options) : run_on_fibers(world.launch(), options, fault);
  return ended && !world.error().empty();
}

/// Whether any of so many seeds shows it.
bool noticed(std::span<const Scene> scenes, bool walk, Fault fault, int seeds = 10) {
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(seeds); ++seed)
    if ((walk && !gives_up(fault, seed)) ||
        std::ranges::any_of(scenes, [&](auto& scene) { return !comes_right(scene, walk, fault, seed); }))
      return true;
  return false;
}

TEST(Faults, NoneIsNoticedWhereThereIsNone) {
  const int seeds = share_of(10);
  EXPECT_FALSE(noticed(walked, true, Fault::none, seeds));
  EXPECT_FALSE(noticed(two_shot, false, Fault::none, seeds));
  EXPECT_FALSE(noticed(one_shot, false, Fault::none, seeds));
}

TEST(Faults, OfTheWalkAreNoticed) {
  for (const Fault fault :
       {Fault::release_relaxed, Fault::acquire_relaxed, Fault::no_publish_barrier, Fault::no_operand_barrier,
        Fault::no_vote, Fault::no_entry_barrier, Fault::wrong_bound, Fault::one_slot_too_many})
    EXPECT_TRUE(noticed(walked, true, fault)) << static_cast<int>(fault);
}

TEST(Faults, ARankThatTakesWindowsAloneIsNoticed) {
  EXPECT_TRUE(chooses_right(Fault::none, 1));
  EXPECT_FALSE(chooses_right(Fault::windows_alone, 1));
}

TEST(Faults, OfTwoShotAreNoticed) {
  for (const Fault fault : {Fault::release_relaxed, Fault::gpu_scope, Fault::no_publish_barrier,
                            Fault::no_entry_barrier, Fault::no_exit_barrier, Fault::wrong_bound})
    EXPECT_TRUE(noticed(two_shot, false, fault)) << static_cast<int>(fault);
}

TEST(Faults, OfOneShotAreNoticed) {
  for (const Fault fault :
       {Fault::one_flag_checked, Fault::one_inbox, Fault::inbox_not_cleared, Fault::gpu_scope, Fault::wrong_link})
    EXPECT_TRUE(noticed(one_shot, false, fault)) << static_cast<int>(fault);
}

}  // namespace
}  // namespace tutti
