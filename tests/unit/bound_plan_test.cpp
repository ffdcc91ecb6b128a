// Does a bound plan find the ranges and addresses of its blocks: in buffers by group, part and tile, in messages, in
// blocks that peers offer, and in groups that differ?
#include "exec/bound_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "support/plan_writer.h"

namespace tutti {
namespace {

using namespace testing;

constexpr std::size_t size = sizeof(std::int32_t);

TEST(BoundPlan, BlocksOfBuffers) {
  const Schedule schedule({.collective = Collective::all_to_all, .ranks = 2}, 2);
  const Plan plan =
      PlanWriter(schedule, 0, Access::mapped).copy(input(3), {output(1), at_peer(Where::peer_output, 1, 2)}, 1).plan();
  std::array<std::byte, 100> in, out, theirs;
  const PeerMemory peers[] = {{}, {.output = theirs.data(), .process = {.pid = 7}}};
  const Binding binding{
      .input = in.data(), .output = out.data(), .type = DataType::int32, .split = Split(11, size, 2), .peers = peers};
  const BoundPlan bound(plan, binding);
  const Action& action = plan.actions[0];
  const Range range = bound.range_of(action, 0);
  EXPECT_EQ(range.begin, 6u);
  EXPECT_EQ(range.count, 5u);
  const Channel channel;
  const Piece piece{.at = range.begin + 1, .skipped = 1, .count = range.count - 1};
  const auto to = plan.destinations(action);
  EXPECT_EQ(bound.source_of(channel, plan.sources(action)[0], piece), in.data() + (11 + 7) * size);
  EXPECT_EQ(bound.destination_of(channel, to[0], piece), out.data() + 7 * size);
  EXPECT_EQ(bound.destination_of(channel, to[1], piece), theirs.data() + (11 + 7) * size);
  EXPECT_FALSE(bound.process_of(channel, to[0]));
  EXPECT_EQ(bound.process_of(channel, to[1]).pid, 7);
}

TEST(BoundPlan, ItemsOfMessagesAndOfferedBlocks) {
  const Plan plan;
  const Binding binding{.type = DataType::int32, .split = Split(3, size, 1)};
  const BoundPlan bound(plan, binding);
  std::array<std::byte, 1000> filled, read, elsewhere;
  Channel channel;
  channel.reserve(2);
  channel.open[1].filling = filled;
  channel.open[1].reading = read;
  const Piece piece{.skipped = 2, .count = 1};
  const std::size_t at = binding.split.stride() + 2 * size;
  EXPECT_EQ(bound.destination_of(channel, slot(1, 1), piece), filled.data() + at);
  EXPECT_EQ(bound.source_of(channel, slot(1, 1), piece), read.data() + at);
  EXPECT_FALSE(bound.process_of(channel, slot(1, 1)));
  channel.open[1].offered = {{}, {.at = elsewhere, .process = {.pid = 7}}};
  EXPECT_EQ(bound.source_of(channel, slot(1, 0), piece), read.data() + 2 * size);
  EXPECT_EQ(bound.source_of(channel, slot(1, 1), piece), elsewhere.data() + 2 * size);
  EXPECT_EQ(bound.process_of(channel, slot(1, 1)).pid, 7);
}

TEST(BoundPlan, GroupsThatDiffer) {
  const Schedule schedule({.collective = Collective::all_to_all, .ranks = 2}, 1);
  const Plan plan = PlanWriter(schedule, 0, Access::slots, 1).acquire(1, 1).copy(input(1), {slot(1, 0)}).plan();
  std::array<std::byte, 100> in;
  const Range groups[] = {{0, 0}, {9, 3}}, none[] = {{0, 5}, {5, 0}};
  const Binding binding{.input = in.data(),
                        .type = DataType::int32,
                        .split = Split(5, size, 1),
                        .groups_differ = true,
                        .input_groups = groups,
                        .output_groups = none};
  const BoundPlan bound(plan, binding);
  const Action& copy = plan.actions[1];
  EXPECT_EQ(bound.range_of(copy, 0).count, 3u);
  EXPECT_EQ(bound.source_of({}, plan.sources(copy)[0], {.at = 1}), in.data() + (9 + 1) * size);
  EXPECT_FALSE(bound.is_empty_message(plan.actions[0], 0));
  EXPECT_TRUE(bound.is_empty_message({.verb = Verb::peek, .peer = 1}, 0));
}

TEST(BoundPlan, PremultipliedSumsScaleOwnContributions) {
  const Schedule schedule({.collective = Collective::all_reduce, .ranks = 2}, 1);
  const Plan plan = PlanWriter(schedule, 0, Access::mapped)
                        .copy(contributed(input(0)), {output(0)})
                        .copy(input(0), {output(0)})
                        .plan();
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::pre_mul_sum}) {
    const Binding binding{.op = op, .split = Split(1, size, 1)};
    const BoundPlan bound(plan, binding);
    const bool scales = op == ReduceOp::pre_mul_sum;
    EXPECT_EQ(bound.scales(), scales);
    EXPECT_EQ(bound.copies_one(plan.actions[0]), !scales);
    EXPECT_TRUE(bound.copies_one(plan.actions[1]));
  }
}

}  // namespace
}  // namespace tutti
