// Predictions from the steps of a few ranks, beside those from the plans of all ranks.
#include "choice/step_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <tuple>

#include "choice/choice.h"
#include "choice/select.h"
#include "plan/fuse.h"
#include "plan/lower.h"

namespace tutti {
namespace {

constexpr std::size_t sizes[] = {16, 4096, 1 << 16, 1 << 20, 16 << 20};

/// Ranks of hosts of equal size, with a core each; one host if `each` is the number of ranks.
struct Job {
  Shape shape;
  Conditions conditions;

  Job(Collective collective, int ranks, int each)
      : shape{.collective = collective, .ranks = ranks},
        conditions{.cores = ranks, .slots = each < ranks ? 3 : 4, .slot_bytes = 64 << 10} {
    if (each == ranks) return;
    for (Rank rank = 0; rank < ranks; ++rank) conditions.hosts.push_back(rank / each);
    if (each > 1) shape.levels = {conditions.hosts};
  }
  std::size_t group(std::size_t bytes) const {
    return bytes / static_cast<std::size_t>(std::max(input_groups(shape.collective, shape.ranks, 0, 0), 1));
  }
};

double walked_us(const Algorithm& algorithm, const Job& job, Access access, std::size_t bytes) {
  std::vector<Plan> plans = lower_all(algorithm.build(job.shape), access);
  for (Plan& plan : plans) plan = fuse(std::move(plan), job.conditions.slots);
  return Cost(plans, Machine{}, job.conditions).us(job.group(bytes));
}

// Where all ranks do the same, one of them is all that there is to know.
TEST(StepCost, IsThatOfAllPlansWhereRanksAreAlike) {
  for (const int ranks : {2, 4, 8, 16, 32, 64})
    for (const auto& [collective, name] :
         {std::pair(Collective::all_reduce, "ring"), std::pair(Collective::all_reduce, "recursive_doubling"),
          std::pair(Collective::all_reduce, "circulant"), std::pair(Collective::all_reduce, "halving_doubling"),
          std::pair(Collective::all_reduce, "two_shot"), std::pair(Collective::all_gather, "ring"),
          std::pair(Collective::all_gather, "recursive_doubling"), std::pair(Collective::all_to_all, "pairwise")}) {
      const Job job(collective, ranks, ranks);
      const Algorithm& algorithm = *find_algorithm(name, job.shape);
      for (const std::size_t bytes : sizes) {
        const double all = walked_us(algorithm, job, Access::slots, bytes);
        StepCost some(algorithm, job.shape, Access::slots, Machine{}, job.conditions);
        EXPECT_NEAR(some.us(job.group(bytes)) / all, 1, 0.2) << name << ", " << ranks << " ranks, " << bytes;
      }
    }
}

/// The time of what is chosen by steps, divided by that of the best, both from the plans of all ranks.
class Loss {
 public:
  void add(double ratio) {
    logarithms_ += std::log(ratio);
    worst_ = std::max(worst_, ratio);
    ++count_;
  }
  double mean() const { return std::exp(logarithms_ / count_); }
  double worst() const { return worst_; }

 private:
  double logarithms_ = 0;
  double worst_ = 1;
  int count_ = 0;
};

TEST(StepCost, ChoosesNearlyAsWellAsAllPlans) {
  Loss loss;
  for (const auto& [ranks, each] :
       {std::pair(6, 6), std::pair(16, 4), std::pair(24, 8), std::pair(24, 1), std::pair(32, 32), std::pair(64, 8)})
    for (int c = 0; c < collective_count; ++c) {
      if (static_cast<Collective>(c) == Collective::barrier) continue;
      const Job job(static_cast<Collective>(c), ranks, each);
      std::map<std::size_t, std::tuple<double, double, double>> found;  // best, chosen by steps, that one's time
      for (const Algorithm* algorithm : candidates(job.shape, Access::slots, "")) {
        if (algorithm->family->items == nullptr) continue;
        StepCost steps(*algorithm, job.shape, Access::slots, Machine{}, job.conditions);
        for (const std::size_t bytes : sizes) {
          const double all = walked_us(*algorithm, job, Access::slots, bytes), some = steps.us(job.group(bytes));
          auto& [best, least, chosen] = found.try_emplace(bytes, 1e18, 1e18, 0).first->second;
          best = std::min(best, all);
          if (some < least) std::tie(least, chosen) = std::pair(some, all);
        }
      }
      for (const auto& [bytes, times] : found) loss.add(std::get<2>(times) / std::get<0>(times));
    }
  EXPECT_LT(loss.mean(), 1.03);
  EXPECT_LT(loss.worst(), 1.6);
}

TEST(StepCost, OfHostsIsTheSameHoweverRanksAreNumbered) {
  constexpr int ranks = 48, each = 8;
  Job blocks(Collective::all_reduce, ranks, each), turns = blocks;
  turns.shape.levels[0].clear();
  for (Rank rank = 0; rank < ranks; ++rank) turns.shape.levels[0].push_back(rank % (ranks / each));
  turns.conditions.hosts = turns.shape.levels[0];
  for (int host = 0; host < ranks / each; ++host)
    for (int i = 0; i < each; ++i) turns.shape.order.push_back(host + i * (ranks / each));
  for (const Algorithm* algorithm : candidates(blocks.shape, Access::slots, "")) {
    StepCost in_blocks(*algorithm, blocks.shape, Access::slots, Machine{}, blocks.conditions);
    StepCost in_turns(*algorithm, turns.shape, Access::slots, Machine{}, turns.conditions);
    EXPECT_DOUBLE_EQ(in_blocks.us(1 << 20), in_turns.us(1 << 20)) << algorithm->name;
  }
}

/// Of hosts with as many ranks: ring k enters each by its k-th rank.
std::vector<std::vector<Rank>> rails(int ranks, int each, int count) {
  std::vector<std::vector<Rank>> rings(static_cast<std::size_t>(count));
  for (int ring = 0; ring < count; ++ring)
    for (Rank rank = 0; rank < ranks; ++rank)
      rings[static_cast<std::size_t>(ring)].push_back(rank / each * each + (rank + ring) % each);
  return rings;
}

// Where nobody waits for long: as of any ring, small calls seem slower than they are.
TEST(StepCost, OfRailsIsNearThatOfAllPlans) {
  for (const auto& [ranks, each, count] : {std::tuple(16, 4, 4), std::tuple(24, 8, 8), std::tuple(32, 8, 4)})
    for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
      Job job(collective, ranks, each);
      job.shape.rings = rails(ranks, each, count);
      const Algorithm& algorithm = *find_algorithm("multi_ring", job.shape);
      ASSERT_EQ(algorithm.name, "multi_ring/0");
      for (const std::size_t bytes : sizes) {
        const double all = walked_us(algorithm, job, Access::slots, bytes);
        StepCost some(algorithm, job.shape, Access::slots, Machine{}, job.conditions);
        const double ratio = some.us(job.group(bytes)) / all;
        EXPECT_GT(ratio, 0.9) << ranks << " ranks, " << bytes;
        EXPECT_LT(ratio, bytes == sizes[4] ? 1.2 : 1.8) << ranks << " ranks, " << bytes;
      }
    }
}

// The largest machines: a choice for every size, of every collective, with a bound on the work, not on the time.
TEST(Choice, ServesVeryManyRanks) {
  for (int c = 0; c < collective_count; ++c) {
    Job job(static_cast<Collective>(c), 24576, 8);
    Envelopes envelopes;
    const auto envelope = envelopes.of(job.shape, Access::slots, "", Machine{}, job.conditions);
    const Algorithm& small = envelope->at(8);
    EXPECT_TRUE(small.supports(job.shape));
    if (job.shape.collective != Collective::all_reduce) continue;
    StepCost steps(small, job.shape, Access::slots, Machine{}, job.conditions);
    EXPECT_LT(steps.steps(), 64) << small.name << " for 8 bytes";
  }
}

}  // namespace
}  // namespace tutti
