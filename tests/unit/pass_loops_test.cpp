// Does each pass get the loop that rules, size and access of its call ask for?
#include "exec/pass_loops.h"

#include <gtest/gtest.h>

#include "support/plan_writer.h"

namespace tutti {
namespace {

using namespace testing;

/// A sum in the results, and in a message.
Plan plan_of(Access access) {
  const Schedule schedule({.collective = Collective::all_reduce, .ranks = 2}, 1);
  return PlanWriter(schedule, 0, access, 1)
      .reduce({input(0), at_peer(Where::peer_input, 1, 0)}, {output(0)})
      .last()
      .copy(output(0), {slot(1, 0)})
      .plan();
}

/// `megabytes`: of input and of output.
PassLoops loops_of(const Plan& plan, double megabytes, const PassRules& rules) {
  const Binding binding{.type = DataType::int32, .split = Split(static_cast<std::size_t>(megabytes * (1 << 18)), 4, 1)};
  return {plan, binding, rules};
}

TEST(PassLoops, SmallCallsUsePlainStores) {
  const PassRules rules{.loops = LoopTable::all(Loop::nontemporal)};
  const Plan plan = plan_of(Access::mapped);
  EXPECT_TRUE(loops_of(plan, 0.2, rules).always_plain());
  EXPECT_FALSE(loops_of(plan, 0.3, rules).always_plain());
  EXPECT_TRUE(loops_of(plan_of(Access::cma), 0.01, rules).always_plain());
}

TEST(PassLoops, LargeCallsUseWhatWasMeasuredOfResults) {
  PassRules rules{.loops = LoopTable::all(Loop::plain_pages)};
  rules.loops.best[pass_class(2, 1, false)] = {Loop::plain, Loop::nontemporal_pages, Loop::nontemporal};
  const Plan plan = plan_of(Access::mapped);
  EXPECT_EQ(loops_of(plan, 0.5, rules).of(plan, plan.actions[0], 4096), Loop::plain);
  EXPECT_EQ(loops_of(plan, 4, rules).of(plan, plan.actions[0], 4096), Loop::nontemporal_pages);
  EXPECT_EQ(loops_of(plan, 32, rules).of(plan, plan.actions[0], 4096), Loop::nontemporal);
  EXPECT_EQ(loops_of(plan, 32, rules).of(plan, plan.actions[1], 4096), Loop::plain) << "not a result";
}

TEST(PassLoops, SumsThatPeersPullHaveTheirOwn) {
  PassRules rules;
  rules.loops.pulled.fill(Loop::nontemporal);
  const Plan plan = plan_of(Access::cma);
  EXPECT_EQ(loops_of(plan, 0.1, rules).of(plan, plan.actions[0], 4096), Loop::nontemporal);
  EXPECT_EQ(loops_of(plan_of(Access::mapped), 4, rules).of(plan, plan.actions[0], 4096), Loop::plain);
}

TEST(PassLoops, ASettingStandsAboveTheMeasured) {
  const PassRules rules{.loops = LoopTable::all(Loop::plain_pages), .nontemporal_bytes = 1 << 20};
  const Plan plan = plan_of(Access::mapped);
  EXPECT_TRUE(loops_of(plan, 0.9, rules).always_plain());
  EXPECT_EQ(loops_of(plan, 1, rules).of(plan, plan.actions[0], 4096), Loop::nontemporal);
}

TEST(PassLoops, LargeMessagesAreStreamed) {
  const PassRules rules{.streamed_bytes = 8192};
  const Plan plan = plan_of(Access::slots);
  EXPECT_TRUE(loops_of(plan, 0.001, rules).always_plain());
  const PassLoops loops = loops_of(plan, 0.01, rules);
  EXPECT_FALSE(loops.always_plain());
  EXPECT_EQ(loops.of(plan, plan.actions[1], 8192), Loop::nontemporal);
  EXPECT_EQ(loops.of(plan, plan.actions[1], 4096), Loop::plain);
  EXPECT_EQ(loops.of(plan, plan.actions[0], 8192), Loop::plain);
}

}  // namespace
}  // namespace tutti
