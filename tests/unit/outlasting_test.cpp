// Which blocks may be read from their sender's buffers, and that a wrong answer is refused.
#include "plan/outlasting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"
#include "analysis/proof/check.h"
#include "plan/fuse.h"
#include "plan/lower.h"

namespace tutti {
namespace {

Schedule schedule_of(std::string_view algorithm, Collective collective, int ranks) {
  const Shape shape{.collective = collective, .ranks = ranks};
  return find_algorithm(algorithm, shape)->build(shape);
}

std::vector<Plan> plans_of(const Schedule& schedule) {
  std::vector<Plan> plans = lower_all(schedule, Access::slots);
  for (Plan& plan : plans) {
    plan = fuse(std::move(plan), 1);
    plan.outlasts = outlasting(plan);
  }
  return plans;
}

struct Blocks {
  int sent = 0;
  int outlasting = 0;
};
Blocks blocks(const Plan& plan) {
  Blocks found;
  for (const Action& action : plan.actions) {
    if (!is_pass(action)) continue;
    for (std::size_t i = 0; i < action.destinations; ++i) {
      if (plan.destinations(action)[i].where != Where::slot) continue;
      ++found.sent;
      found.outlasting += plan.outlasts[action.first + action.sources + i] ? 1 : 0;
    }
  }
  return found;
}

TEST(Outlasting, AreBlocksThatNobodyChangesInTheirStep) {
  for (const auto& [algorithm, collective] : {std::pair{"two_shot", Collective::all_reduce},
                                              {"ring", Collective::all_gather},
                                              {"ring", Collective::all_reduce},
                                              {"one_shot", Collective::all_to_all}}) {
    const auto plans = plans_of(schedule_of(algorithm, collective, 4));
    for (const Plan& plan : plans) {
      const Blocks found = blocks(plan);
      EXPECT_GT(found.sent, 0) << algorithm;
      EXPECT_EQ(found.outlasting, found.sent) << algorithm << " " << name(collective) << ", rank " << plan.rank;
    }
  }
}

TEST(Outlasting, AreNotBlocksThatBothSidesExchangeAndOverwrite) {
  const auto plans = plans_of(schedule_of("recursive_doubling", Collective::all_reduce, 8));
  for (const Plan& plan : plans) EXPECT_LT(blocks(plan).outlasting, blocks(plan).sent) << plan.rank;
}

TEST(Outlasting, IsProvenWithTheRestOfThePlan) {
  const Schedule schedule = schedule_of("recursive_doubling", Collective::all_reduce, 8);
  std::vector<Plan> plans = plans_of(schedule);
  const CheckCase one_host{.slots = 2, .hosts = std::vector<int>(8)};
  const auto right = check(schedule, plans, one_host);
  EXPECT_TRUE(right) << right.error().text();

  for (Plan& plan : plans) plan.outlasts.assign(plan.places.size(), true);
  const auto wrong = check(schedule, plans, one_host);
  ASSERT_FALSE(wrong) << "two ranks that wait for each other to read";
  EXPECT_NE(wrong.error().text().find("deadlock"), std::string::npos) << wrong.error().text();

  const CheckCase two_hosts{.slots = 2, .hosts = {0, 1, 2, 3, 4, 5, 6, 7}};
  const auto apart = check(schedule, plans, two_hosts);
  EXPECT_TRUE(apart) << "nobody offers anything: " << apart.error().text();
}

}  // namespace
}  // namespace tutti
