// What algorithms promise about steps and bytes whose ranks exchange with one partner, or a few, after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "support/schedule_counts.h"

namespace tutti {
namespace {

using testing::blocks_per_message;
using testing::blocks_sent;
using testing::built;
using testing::is_power_of_two;
using testing::log2_down;
using testing::log2_up;
using testing::log_up;
using testing::messages;
using testing::messages_per_step;
using testing::supported;

constexpr auto all_reduce = Collective::all_reduce;
constexpr auto all_gather = Collective::all_gather;
constexpr auto reduce_scatter = Collective::reduce_scatter;

/// Blocks times how far they go around, of all ranks.
int block_hops(const Schedule& schedule) {
  int hops = 0;
  for (const Transfer& t : schedule.transfers()) {
    const int distance = std::abs(t.from - t.to);
    hops += std::min(distance, schedule.ranks() - distance);
  }
  return hops;
}

TEST(HalvesAndDoubles, TakesLogarithmicStepsAtOptimalVolume) {
  for (const std::string name : {"halving_doubling", "swing", "bine"})
    for (int n = 2; n <= 64; ++n) {
      const Schedule schedule = built(name, all_reduce, n);
      const int active = 1 << log2_down(n);
      EXPECT_EQ(schedule.parts(), active);
      EXPECT_EQ(schedule.steps(), 2 * log2_down(n) + (n == active ? 0 : 2)) << name << n;
      EXPECT_EQ(blocks_sent(schedule), 2 * (active - 1) + (n == active ? 0 : active)) << name << n;
      EXPECT_EQ(messages_per_step(schedule), 1);
      EXPECT_EQ(schedule.scratch_groups(), 0);
    }
}

TEST(HalvesAndDoubles, InPiecesOfMemory) {
  for (const std::string name : {"halving_doubling", "bine"})
    for (int n = 2; n <= 64; ++n)
      for (const auto& [message, blocks] : messages(built(name, all_reduce, n))) {
        const auto [least, most] = std::ranges::minmax(blocks);
        EXPECT_EQ(most - least + 1, static_cast<int>(blocks.size())) << name << n;
      }
}

TEST(Swing, HasPartnersThatSwing) {
  constexpr int distances[] = {1, -1, 3, -5, 11, -21};
  for (int n = 2; n <= 64; n *= 2)
    for (const std::string name : {"swing", "swing_latency", "bine"})
      for (const auto& [message, blocks] : messages(built(name, all_reduce, n))) {
        const auto [step, from, to] = message;
        const int steps = log2_up(n);
        const bool back = step >= steps || name == "swing_latency";
        const int swing = distances[back ? steps - 1 - step % steps : step];
        EXPECT_EQ(to, (from + (from % 2 == 0 ? swing : -swing) + n) % n) << name << n;
      }
}

TEST(Swing, GoesLessFarThanHalvingAndDoubling) {
  for (int n = 8; n <= 64; n *= 2)
    EXPECT_LT(block_hops(built("swing", all_reduce, n)), block_hops(built("halving_doubling", all_reduce, n))) << n;
}

TEST(Swing, HasAHalfOfItsOwnForReduceScatterAndAllGather) {
  for (int n = 2; n <= 64; ++n)
    for (const Collective collective : {reduce_scatter, all_gather}) {
      ASSERT_EQ(supported("swing", collective, n), is_power_of_two(n));
      if (!is_power_of_two(n)) continue;
      const Schedule half = built("swing", collective, n);
      EXPECT_EQ(half.steps(), log2_up(n));
      EXPECT_EQ(blocks_sent(half), n - 1);
      EXPECT_EQ(messages_per_step(half), 1);
      EXPECT_EQ(half.scratch_groups(), collective == reduce_scatter ? n / 2 - 1 : 0);
    }
}

TEST(SwingLatency, TakesHalfTheSteps) {
  for (int n = 2; n <= 64; ++n) {
    const Schedule schedule = built("swing_latency", all_reduce, n);
    EXPECT_EQ(schedule.steps(), log2_down(n) + (is_power_of_two(n) ? 0 : 2));
    EXPECT_LE(blocks_sent(schedule), schedule.steps());
    EXPECT_EQ(schedule.parts(), 1);
  }
}

TEST(RecursiveDoubling, SendsEverythingInEachStep) {
  for (int n = 2; n <= 64; ++n) {
    const Schedule schedule = built("recursive_doubling", all_reduce, n);
    EXPECT_EQ(schedule.parts(), 1);
    EXPECT_LE(blocks_sent(schedule), schedule.steps());
    EXPECT_EQ(messages_per_step(schedule), 1);
  }
}

TEST(OneShot, SendsEverythingToEveryone) {
  for (int n = 2; n <= 64; ++n)
    for (const Collective collective : {all_reduce, all_gather, reduce_scatter}) {
      const Schedule schedule = built("one_shot", collective, n);
      EXPECT_EQ(blocks_sent(schedule), n - 1);
      EXPECT_EQ(messages_per_step(schedule), n - 1);
      EXPECT_EQ(schedule.scratch_groups(), reduces(collective) && n > 16 ? 1 : 0);
    }
}

TEST(RecursiveHalving, TakesLogarithmicStepsAtOptimalVolume) {
  for (int n = 2; n <= 64; ++n) {
    const Schedule schedule = built("recursive_halving", reduce_scatter, n);
    const bool power = is_power_of_two(n);
    EXPECT_EQ(schedule.steps(), log2_down(n) + (power ? 0 : 2));
    EXPECT_EQ(messages_per_step(schedule), 1);
    EXPECT_LE(schedule.scratch_groups(), power ? n / 2 - 1 : n - 1);
    if (power) {
      EXPECT_EQ(blocks_sent(schedule), n - 1);
    } else {
      EXPECT_EQ(blocks_sent(schedule), n) << "a folded rank's input";
    }
  }
}

TEST(RecursiveMultiplying, TakesOneStepForEachDigit) {
  for (const int radix : {3, 4, 8})
    for (int n = 2; n <= 64; ++n) {
      const std::string name = "recursive_multiplying/" + std::to_string(radix);
      const int steps = log_up(n, radix);
      int power = 1;
      for (int i = 0; i < steps; ++i) power *= radix;
      const bool folds = n > radix && n != power;
      const Schedule reduced = built(name, all_reduce, n);
      EXPECT_EQ(reduced.steps(), folds ? steps - 1 + 2 : steps) << name << ", " << n;
      EXPECT_LE(messages_per_step(reduced), radix - 1) << name << ", " << n;
      EXPECT_LE(blocks_sent(reduced), (radix - 1) * reduced.steps());

      ASSERT_EQ(supported(name, all_gather, n), n == power);
      if (n != power) continue;
      const Schedule gathered = built(name, all_gather, n);
      EXPECT_EQ(gathered.steps(), steps);
      EXPECT_EQ(blocks_sent(gathered), n - 1);
      EXPECT_EQ(messages_per_step(gathered), radix - 1);
    }
}

TEST(KHalvingDoubling, TakesTwoStepsForEachDigitAtOptimalVolume) {
  for (const int radix : {3, 4, 8})
    for (int n = 2; n <= 64; ++n) {
      const Schedule schedule = built("k_halving_doubling/" + std::to_string(radix), all_reduce, n);
      const int k = std::min(radix, n);
      int active = 1, digits = 0;
      for (; active * k <= n; active *= k) ++digits;
      EXPECT_EQ(schedule.parts(), active);
      EXPECT_EQ(schedule.steps(), 2 * digits + (n == active ? 0 : 2)) << radix << ", " << n;
      EXPECT_EQ(messages_per_step(schedule), n == active ? k - 1 : std::max(k - 1, (n + active - 1) / active - 1));
      EXPECT_LE(blocks_sent(schedule), 2 * (active - 1) + (n == active ? 0 : (k - 1) * active));
      if (n == active) {
        EXPECT_EQ(blocks_sent(schedule), 2 * (n - 1)) << radix << ", " << n;
      }
    }
}

TEST(Bruck, TakesOneStepForEachDigitAtOptimalVolume) {
  for (const int radix : {2, 4, 8})
    for (int n = 2; n <= 64; ++n) {
      const Schedule gathered = built("bruck/" + std::to_string(radix), all_gather, n);
      EXPECT_EQ(gathered.steps(), log_up(n, radix)) << radix << ", " << n;
      EXPECT_EQ(blocks_sent(gathered), n - 1);
      EXPECT_EQ(messages_per_step(gathered), std::min(radix, n) - 1);
    }
}

TEST(NeighbourExchange, TakesHalfTheStepsOfARingAmongTheSameNeighbours) {
  for (int n = 2; n <= 64; ++n) {
    ASSERT_EQ(supported("neighbour_exchange", all_gather, n), n % 2 == 0);
    if (n % 2 != 0) continue;
    const Schedule gathered = built("neighbour_exchange", all_gather, n);
    EXPECT_EQ(gathered.steps(), n / 2);
    EXPECT_EQ(blocks_sent(gathered), n - 1);
    EXPECT_EQ(messages_per_step(gathered), 1);
    EXPECT_EQ(block_hops(gathered), n * (n - 1)) << "everything goes to the next rank";
  }
}

TEST(Pairwise, ReducesWithOnePartnerAtATimeAndNoScratch) {
  for (int n = 2; n <= 64; ++n) {
    const Schedule exchange = built("pairwise", reduce_scatter, n);
    EXPECT_EQ(exchange.steps(), n - 1);
    EXPECT_EQ(blocks_sent(exchange), n - 1);
    EXPECT_EQ(messages_per_step(exchange), 1);
    EXPECT_EQ(exchange.scratch_groups(), 0);
  }
}

TEST(Pat, TakesALogarithmicPhaseAndALinearOne) {
  for (const int aggregation : {2, 8, 32})
    for (int n = 2; n <= 64; ++n)
      for (const Collective collective : {all_gather, reduce_scatter}) {
        const Schedule schedule = built("pat/" + std::to_string(aggregation), collective, n);
        int stride = 1;
        while (stride * aggregation < n) stride *= 2;
        EXPECT_EQ(schedule.steps(), log2_up(n) - log2_up(stride) + stride - 1) << aggregation << ", " << n;
        EXPECT_EQ(blocks_sent(schedule), n - 1);
        EXPECT_EQ(messages_per_step(schedule), 1);
        EXPECT_LE(blocks_per_message(schedule), aggregation);
        EXPECT_LE(schedule.scratch_groups(), aggregation * (1 + log2_up(stride)));
      }
}

TEST(Pat, SendsFewBlocksFar) {
  for (int n = 4; n <= 64; n *= 2)
    for (const auto& [message, blocks] : messages(built("pat", all_gather, n))) {
      const auto [step, from, to] = message;
      if ((to - from + n) % n == n / 2) {
        EXPECT_EQ(blocks.size(), 1u) << n;
      }
    }
}

TEST(Sparbit, IsPatWithoutALimit) {
  for (int n = 2; n <= 64; ++n) {
    const Schedule gathered = built("sparbit", all_gather, n);
    EXPECT_EQ(gathered.steps(), log2_up(n));
    EXPECT_EQ(blocks_sent(gathered), n - 1);
    EXPECT_EQ(messages_per_step(gathered), 1);
    if (n <= 32) {
      EXPECT_EQ(messages(gathered), messages(built("pat/32", all_gather, n)));
    }
  }
}

}  // namespace
}  // namespace tutti
