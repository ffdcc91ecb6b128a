"""A body for the all-gather through windows: every rank copies the inputs of all to its output, without a plan's actions."""
NAME = "pull"
TARGETS = ["shots_test", "run_plan_test", "kernel_threads_test", "device_program_test", "kernel_image_test", "tutti"]
OPTIONS = ""  # with nvcc, where there is one
COMMANDS = [
    "build/tests/shots_test",
    "build/tests/run_plan_test",
    "build/tests/kernel_threads_test",
    "build/tests/device_program_test",
    "build/tests/kernel_image_test",
]

BODY = """// The body of an all-gather through windows: each rank copies the inputs of all ranks to its output. Used for plans that
// have exactly this form (exec/device_program.h); it does not read their actions.
#pragma once

#include <cstddef>

#include "kernels/block.h"
#include "kernels/entries.h"
#include "kernels/extent.h"
#include "kernels/pass.h"
#include "kernels/waiting.h"

namespace tutti::device {

template <>
struct Shared<Body::pull> {
  Operands operands[2];  ///< of this tile and the previous one
  WaitShared waits;
  BarrierLinks links;
};

template <class T, Block B>
TUTTI_DEVICE void pull(B& b, Shared<Body::pull>& s, const Call& call) {
  const BlockPart part = part_of(b, call);
  const RankCall& rank = part.rank;
  const int ranks = static_cast<int>(call.ranks);
  const std::uint32_t channel = part.channel;
  if (channel >= call.cut.tiles) return;  // equal on all ranks
  fetch(b, s.links, part.links, ranks);
  if (call.synchronises != 0 && !barrier(b, s.waits, s.links, call, rank, static_cast<int>(channel), 0)) return;
  int turn = 0;
  for (std::uint64_t tile = channel; tile < call.cut.tiles; tile += call.channels) {
    const Extent extent = extent_of(call.cut, 0, tile);
    const std::size_t at = extent.begin * call.cut.element_bytes;
    for (int i = 0; i < ranks; ++i) {
      const int from = (static_cast<int>(rank.rank) + i) % ranks;
      Operands& o = s.operands[turn ^= 1];
      if (b.thread() == 0) {
        o.sources[0] = call.buffers[from].input + at;
        o.destinations[0] = call.buffers[rank.rank].output + from * call.cut.count * call.cut.element_bytes + at;
      }
      b.sync(Barrier::operands);
      copy_pass(b, o, {}, extent.count * call.cut.element_bytes);
    }
  }
  (void)barrier(b, s.waits, s.links, call, rank, static_cast<int>(channel), 1);
}

}  // namespace tutti::device
"""

CHOICE = """/// Whether inputs go to outputs directly, so that it does not matter which end copies.
bool is_pull(const Plan& plan) {
  if (plan.collective != Collective::all_gather || plan.access != Access::mapped || plan.parts != 1) return false;
  return std::ranges::all_of(plan.actions, [&plan](const Action& action) {
    if (action.verb == Verb::signal || action.verb == Verb::wait) return true;
    if (action.verb != Verb::copy) return false;
    const Where from = plan.sources(action)[0].where;
    return from == Where::input || from == Where::peer_input;
  });
}
"""

TEST = """
TEST(Pull, GathersAsItsPlanDoes) {
  Random random(test_seed());
  for (int ranks = 2; ranks <= 8; ++ranks)
    for (const std::size_t count : {1u, 9u, 64u, 150u}) {
      KernelWorld world(plans_of("one_shot", Collective::all_gather, ranks, Access::mapped),
                        {.count = count, .channels = random.between(1, 2), .apart = random.chance(50)});
      ASSERT_EQ(run(world, Body::pull, random.next() % 1000, random.between(1, 3)), "") << ranks << ", " << count;
    }
}
"""


def make(tree):
    tree.new("kernels/pull.h", BODY)
    tree.change("kernels/bodies.inc", "TUTTI_KERNEL_BODY(one_shot)", "{}\nTUTTI_KERNEL_BODY(pull)  // all-gather; mapped")
    tree.change("kernels/bodies.h", '#include "kernels/one_shot.h"', '{}\n#include "kernels/pull.h"')
    tree.change("src/exec/device_program.cpp", "/// Of a part, where channels share it.", CHOICE + "\n{}")
    tree.change("src/exec/device_program.cpp", "  return {.body = device::Body::run_plan, .type = type};",
                "  if (is_pull(plan)) return {.body = device::Body::pull, .type = type};\n{}")
    tree.change("tests/kernels/shots_test.cpp", "/// Launches of one rank each, of which one differs", TEST.lstrip("\n") + "\n{}")
