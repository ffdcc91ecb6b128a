// Whatever a right schedule looks like: if it lowers, its plans are proven, fused or not.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "analysis/proof/check.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "plan/verify.h"
#include "support/plan_text.h"
#include "support/random_schedule.h"
#include "support/seeds.h"
#include "support/share.h"

namespace tutti {
namespace {

using testing::Random;
using testing::RandomSchedule;

constexpr Access accesses[] = {Access::in_line, Access::mapped, Access::cma, Access::slots};

std::vector<Plan> plans(const Schedule& schedule, Access access, int fused_for_slots) {
  std::vector<Plan> all = lower_all(schedule, access);
  if (fused_for_slots > 0)
    for (Plan& plan : all) plan = fuse(std::move(plan), fused_for_slots);
  return all;
}

std::string text(const std::vector<Plan>& all) {
  std::string result;
  for (const Plan& plan : all) {
    result += "rank " + std::to_string(plan.rank) + "\n";
    for (const std::string& line : testing::lines(plan)) result += "  " + line + "\n";
  }
  return result;
}

void expect_proven(const Schedule& schedule, Access access, int fused_for_slots) {
  const std::vector<Plan> all = plans(schedule, access, fused_for_slots);
  for (const CheckCase& how : check_cases(schedule.collective(), schedule.ranks(), access)) {
    if (access == Access::slots && how.slots < fused_for_slots && fused_for_slots > 1) continue;
    const auto proof = check(schedule, all, how);
    ASSERT_TRUE(proof) << name(access) << ", fused for " << fused_for_slots << " slots, run with " << how.slots << ": "
                       << proof.error().text() << "\n"
                       << text(all);
  }
}

class RandomSchedules : public ::testing::TestWithParam<Collective> {};

TEST_P(RandomSchedules, HaveProvenPlans) {
  std::map<Access, int> carried;
  for (const std::uint64_t seed : seeds(200)) {
    SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(seed));
    Random random(seed);
    const Schedule schedule = RandomSchedule(GetParam(), random).make();
    if (!verify(schedule)) continue;  // an input was read after the output in its place was written
    for (const Access access : accesses) {
      if (!lowers_to(schedule, access)) continue;
      ++carried[access];
      for (const int fused_for_slots : {0, 1, 2, 3}) expect_proven(schedule, access, fused_for_slots);
      if (HasFatalFailure()) return;
    }
  }
  if (std::getenv("TUTTI_TEST_SEED")) return;
  for (const Access access : {Access::mapped, Access::cma, Access::slots})
    EXPECT_GE(carried[access], share_of(10)) << "too few schedules for " << name(access);
}

INSTANTIATE_TEST_SUITE_P(Collectives, RandomSchedules,
                         ::testing::Values(Collective::all_gather, Collective::all_reduce),
                         [](const auto& param) { return std::string(name(param.param)); });

}  // namespace
}  // namespace tutti
