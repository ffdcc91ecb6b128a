// Every algorithm, for every number of ranks, root and reach: is its schedule right, and are its plans?
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <numeric>

#include "algorithms/algorithm.h"
#include "analysis/proof/check.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "plan/outlasting.h"
#include "plan/verify.h"
#include "support/environment.h"
#include "support/random.h"

namespace tutti {
namespace {

using testing::environment;
using testing::Random;
using testing::test_seed;

/// From so many ranks on samples do: of roots, of ways to fuse, and of the cases of check.
int ranks_in_full() {
  return environment("TUTTI_TEST_FULL", 16);
}

/// Members of a family differ by a number alone: the first is proven everywhere, the others for few ranks and for some
/// numbers of them that are special to a radix or a size of groups.
bool is_sample(const Algorithm& algorithm, int ranks) {
  if (&algorithm == &member(*algorithm.family) || ranks <= ranks_in_full() + 1) return true;
  constexpr int special[] = {24, 27, 32, 33, 48, 63, 64};
  return std::ranges::find(special, ranks) != std::end(special);
}

std::vector<Rank> roots(Collective collective, int ranks, Random& random) {
  if (!rooted(collective)) return {0};
  std::vector<Rank> all{0, random.between(1 % ranks, ranks - 1)};
  if (ranks <= ranks_in_full()) {
    all.resize(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
  }
  return all;
}

std::vector<Plan> fused(std::vector<Plan> all, int slots) {
  for (Plan& plan : all) plan = fuse(std::move(plan), slots);
  return all;
}

bool alike(const Plan& a, const Plan& b) {
  return a.actions == b.actions && a.places == b.places && a.items_max == b.items_max && a.rank == b.rank &&
         a.parts == b.parts && a.scratch_groups == b.scratch_groups && a.direct == b.direct;
}

/// What one test proves; made of the schedules of one number of ranks.
class Prover {
 public:
  explicit Prover(int ranks) : ranks_(ranks), random_(test_seed() + static_cast<std::uint64_t>(ranks)) {}

  void prove(const Algorithm& algorithm, const Shape& shape) {
    const Schedule schedule = algorithm.build(shape);
    where_ = std::string(algorithm.name) + " " + std::string(name(shape.collective)) + ", " +
             std::to_string(shape.ranks) + " ranks, root " + std::to_string(shape.root);
    const auto meaning = verify(schedule);
    if (!meaning) {
      ADD_FAILURE() << where_ << ": " << meaning.error().text();
      return;
    }
    for (const Access access : {Access::in_line, Access::mapped, Access::cma, Access::slots})
      if (lowers_to(schedule, access)) prove(schedule, access);
  }
  int checks() const { return checks_; }
  Random& random() { return random_; }

 private:
  void prove(const Schedule& schedule, Access access) {
    std::vector<int> ways{0, 1};
    if (access == Access::slots) ways.push_back(2);
    if (ranks_ > ranks_in_full()) ways = {random_.below(static_cast<int>(ways.size()))};
    const std::vector<Plan> plain = lower_all(schedule, access);
    if (ranks_ <= ranks_in_full() || random_.chance(25)) {
      const Rank one = random_.below(ranks_);
      EXPECT_TRUE(alike(lower(schedule, one, access), plain[static_cast<std::size_t>(one)]))
          << where_ << ", " << name(access) << ": the plan of rank " << one << " made alone";
    }
    for (const int slots : ways) {
      std::vector<Plan> all = slots == 0 ? plain : fused(plain, slots);
      if (access == Access::slots)
        for (Plan& plan : all) plan.outlasts = outlasting(plan);
      prove(schedule, all, access, slots);
    }
  }

  void prove(const Schedule& schedule, const std::vector<Plan>& all, Access access, int fused_for_slots) {
    std::vector<CheckCase> cases = check_cases(schedule.collective(), schedule.ranks(), access);
    std::erase_if(cases, [&](const CheckCase& how) { return fused_for_slots > 1 && how.slots < fused_for_slots; });
    if (access == Access::slots) add_hosts(cases);
    if (ranks_ > ranks_in_full()) {
      const CheckCase one = cases[static_cast<std::size_t>(random_.below(static_cast<int>(cases.size())))];
      cases = {one};
    }
    for (const CheckCase& how : cases) {
      ++checks_;
      const auto proven = check(schedule, all, how);
      EXPECT_TRUE(proven) << where_ << ", " << name(access) << ", fused for " << fused_for_slots << " slots, run with "
                          << how.slots << ", hosts " << ::testing::PrintToString(how.hosts) << ", in place "
                          << std::ranges::count(how.in_place, true) << ": " << proven.error().text();
    }
  }

  /// All ranks on one host, and ranks on random hosts, which read blocks from each other's buffers.
  void add_hosts(std::vector<CheckCase>& cases) {
    const std::size_t alone = cases.size();
    for (std::size_t i = 0; i < alone; ++i) {
      if (cases[i].slots == 0) continue;
      for (const int hosts : {1, random_.between(2, 3)}) {
        cases.push_back(cases[i]);
        cases.back().hosts.resize(static_cast<std::size_t>(ranks_));
        for (int& host : cases.back().hosts) host = random_.below(hosts);
      }
    }
  }

  int ranks_;
  Random random_;
  std::string where_;
  int checks_ = 0;
};

class EveryAlgorithm : public ::testing::TestWithParam<int> {};

TEST_P(EveryAlgorithm, IsProven) {
  SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(test_seed()));
  const int ranks = GetParam();
  Prover prover(ranks);
  for (const Algorithm& algorithm : algorithms())
    for (int c = 0; c < collective_count; ++c) {
      const auto collective = static_cast<Collective>(c);
      for (const Rank root : roots(collective, ranks, prover.random())) {
        const Shape shape{.collective = collective, .ranks = ranks, .root = root};
        if (is_sample(algorithm, ranks) && algorithm.supports(shape)) prover.prove(algorithm, shape);
      }
    }
  std::cout << prover.checks() << " checks\n";
}

/// Rings of a machine may cross each other, and share links.
std::vector<std::vector<Rank>> random_rings(int ranks, Random& random) {
  std::vector<std::vector<Rank>> rings(static_cast<std::size_t>(random.between(1, 5)));
  for (auto& ring : rings) {
    ring.resize(static_cast<std::size_t>(ranks));
    std::iota(ring.begin(), ring.end(), 0);
    for (int i = ranks - 1; i > 0 && random.chance(90); --i)
      std::swap(ring[static_cast<std::size_t>(i)], ring[static_cast<std::size_t>(random.below(i + 1))]);
  }
  return rings;
}

TEST_P(EveryAlgorithm, IsProvenAlongRandomRings) {
  SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(test_seed()));
  const int ranks = GetParam();
  Prover prover(ranks);
  for (const Algorithm& algorithm : algorithms())
    for (int c = 0; algorithm.family == &algorithm::multi_ring && c < collective_count; ++c) {
      const Shape shape{
          .collective = static_cast<Collective>(c), .ranks = ranks, .rings = random_rings(ranks, prover.random())};
      if (is_sample(algorithm, ranks) && algorithm.supports(shape)) prover.prove(algorithm, shape);
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryAlgorithm, ::testing::Range(1, environment("TUTTI_TEST_RANKS", 64) + 1));

/// Plans of all ranks for one call, however they may be made.
struct Program {
  std::string name;
  Schedule schedule;
  std::vector<Plan> plans;
  int slots_min = 0;  ///< fewer would not do for them
};

Program random_program(int ranks, Random& random) {
  for (;;) {
    const auto all = algorithms();
    const Algorithm& algorithm = all[static_cast<std::size_t>(random.below(static_cast<int>(all.size())))];
    Shape shape{.collective = static_cast<Collective>(random.below(collective_count)), .ranks = ranks};
    if (rooted(shape.collective)) shape.root = random.below(ranks);
    const auto access = static_cast<Access>(random.below(4));
    if (!serves(algorithm, shape, access)) continue;
    Schedule schedule = algorithm.build(shape);
    const int slots = random.below(access == Access::slots ? 3 : 2);
    std::vector<Plan> plans = lower_all(schedule, access);
    if (slots > 0) plans = fused(std::move(plans), slots);
    return {.name = std::string(algorithm.name) + " " + std::string(name(shape.collective)) + ", root " +
                    std::to_string(shape.root) + ", " + std::string(name(access)) + ", fused for " +
                    std::to_string(slots),
            .schedule = std::move(schedule),
            .plans = std::move(plans),
            .slots_min = slots > 1 ? slots : 0};
  }
}

CheckedCall call_of(const Program& program, Random& random) {
  const auto mixes = check_cases(program.schedule.collective(), program.schedule.ranks(), Access::mapped);
  return {.schedule = &program.schedule,
          .plans = program.plans,
          .in_place = mixes[static_cast<std::size_t>(random.below(static_cast<int>(mixes.size())))].in_place};
}

class PlanAfterPlan : public ::testing::TestWithParam<int> {};

/// Slots, flags and lines are left as any other plan can take them up, whatever way that one goes.
TEST_P(PlanAfterPlan, IsProven) {
  SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(test_seed()));
  const int ranks = GetParam();
  Random random(test_seed() * 1000 + static_cast<std::uint64_t>(ranks));
  const int wanted = environment("TUTTI_TEST_PAIRS", ranks <= 16 ? 40 : 2);
  for (int i = 0; i < wanted; ++i) {
    const Program first = random_program(ranks, random), second = random_program(ranks, random);
    const CheckedCall calls[] = {call_of(first, random), call_of(second, random)};
    const int slots = std::max(random.below(3), std::max(first.slots_min, second.slots_min));
    const auto proven = check(calls, {.slots = slots, .channels = 2, .tiles = 3, .calls = 2});
    EXPECT_TRUE(proven) << ranks << " ranks, " << slots << " slots: " << first.name << "; then " << second.name << ": "
                        << proven.error().text();
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, PlanAfterPlan, ::testing::Range(2, environment("TUTTI_TEST_RANKS", 64) + 1));

/// TUTTI_TEST_MANY schedules of 65 to 1,024 ranks, picked at random; those of up to 128 with their plans.
TEST(ManyRanks, AreProvenInSamples) {
  SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(test_seed()));
  constexpr int with_plans = 128;
  Random random(test_seed());
  const int wanted = environment("TUTTI_TEST_MANY", 16);
  for (int proven = 0; proven < wanted;) {
    const int ranks = random.chance(50) ? random.between(65, with_plans) : random.between(with_plans, 1024);
    const auto all = algorithms();
    const Algorithm& algorithm = all[static_cast<std::size_t>(random.below(static_cast<int>(all.size())))];
    Shape shape{.collective = static_cast<Collective>(random.below(collective_count)), .ranks = ranks};
    if (rooted(shape.collective)) shape.root = random.below(ranks);
    if (!algorithm.supports(shape)) continue;
    ++proven;
    if (ranks <= with_plans) {
      Prover prover(ranks);
      prover.prove(algorithm, shape);
      continue;
    }
    const auto meaning = verify(algorithm.build(shape));
    EXPECT_TRUE(meaning) << algorithm.name << " " << name(shape.collective) << ", " << ranks << " ranks, root "
                         << shape.root << ": " << meaning.error().text();
    EXPECT_TRUE(!meaning || meaning->same_bits) << algorithm.name << ", " << ranks << " ranks";
  }
}

}  // namespace
}  // namespace tutti
