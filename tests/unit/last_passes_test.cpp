// Which pass a copy can be merged with, and what lies in between that forbids it.
#include "plan/last_passes.h"

#include <gtest/gtest.h>

#include "support/plan_writer.h"

namespace tutti {
namespace {

using namespace testing;

/// For the last action of a plan, a copy, once all before it have been seen.
int maker(PlanWriter& writer) {
  const Plan& plan = writer.plan();
  LastPasses last(plan);
  const int copy = static_cast<int>(plan.actions.size()) - 1;
  for (int i = 0; i < copy; ++i)
    if (const Action& action = plan.actions[static_cast<std::size_t>(i)]; is_pass(action))
      last.runs(i, action);
    else
      last.waits(i);
  return last.maker_of(plan, plan.actions.back());
}

PlanWriter of_three(Access access) {
  return {Schedule({.collective = Collective::all_reduce, .ranks = 3}, 3), 0, access};
}

TEST(LastPasses, FindTheMakerOfTheSource) {
  EXPECT_EQ(maker(of_three(Access::slots).copy(input(0), {output(0)}).copy(output(0), {slot(1, 0)})), 0);
  EXPECT_EQ(maker(of_three(Access::slots).copy(input(0), {output(0)}).copy(output(1), {slot(1, 0)})), LastPasses::none);
}

TEST(LastPasses, FindNoneBeforeAWait) {
  EXPECT_EQ(maker(of_three(Access::mapped).copy(input(0), {output(0)}).wait(1).copy(output(0), {output(1)})),
            LastPasses::none);
}

TEST(LastPasses, FindNoneWhereTheDestinationIsReadInBetween) {
  EXPECT_EQ(maker(of_three(Access::slots)
                      .copy(input(0), {output(0)})
                      .copy(output(1), {output(2)})
                      .copy(output(0), {output(1)})),
            LastPasses::none);
}

TEST(LastPasses, ShareTheSourceOfACopyExceptWithSlots) {
  const auto twice = [](Access access) {
    return maker(of_three(access).copy(input(0), {output(1)}).copy(input(0), {output(2)}));
  };
  EXPECT_EQ(twice(Access::mapped), 0);
  EXPECT_EQ(twice(Access::slots), LastPasses::none);
}

TEST(LastPasses, KnowACopyThatWasMergedAsAWrite) {
  PlanWriter writer = of_three(Access::slots);
  writer.copy(input(0), {output(0)}).copy(output(0), {output(1)}).copy(output(1), {slot(1, 0)});
  const Plan& plan = writer.plan();
  LastPasses last(plan);
  last.runs(0, plan.actions[0]);
  last.writes(0, plan.actions[1].first + 1);
  EXPECT_EQ(last.maker_of(plan, plan.actions[2]), 0);
}

}  // namespace
}  // namespace tutti
