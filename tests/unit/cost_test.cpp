// Predicted times: what follows from the steps and bytes of an algorithm, on machines where one thing alone takes time.
#include "choice/cost.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "choice/choice.h"
#include "choice/select.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "support/schedule_counts.h"
#include "support/shapes.h"

namespace tutti {
namespace {

using testing::log2_up;

constexpr double nothing = 1e-4, endless = 1e5;

/// A machine on which nothing takes time.
Machine idle() {
  Machine m;
  m.hop_us = m.switch_us = m.enter_us = m.setup_us = m.line_us = m.pass_us = m.message_us = m.pull.call_us = nothing;
  for (Rates* rates : {&m.pull.together, &m.pull.huge_together, &m.read, &m.write, &m.far.read, &m.far.write})
    rates->gbps.fill(endless);
  for (Rates* rates : {&m.far.streamed_read, &m.far.streamed_write}) rates->gbps.fill(nothing);
  for (auto& of_class : m.loops.gbps)
    for (auto& rates : of_class) rates.fill(endless);
  return m;
}

double us(std::string_view algorithm, const Shape& shape, Access access, std::size_t group_bytes,
          const Machine& machine, Conditions conditions = {.cores = 64}) {
  const Algorithm* const found = find_algorithm(algorithm, shape);
  std::vector<Plan> plans = lower_all(found->build(shape), access);
  for (Plan& plan : plans) plan = fuse(std::move(plan), conditions.slots);
  return Cost(plans, machine, conditions).us(group_bytes);
}

TEST(Cost, OfHopsAloneIsTheStepsAndOneToEnter) {
  Machine hops = idle();
  hops.hop_us = 1;
  const auto of = [&](const char* name, Collective collective, int ranks) {
    return us(name, {.collective = collective, .ranks = ranks}, Access::slots, 64, hops);
  };
  for (const int ranks : {2, 3, 5, 8, 13}) {
    EXPECT_NEAR(of("ring", Collective::all_reduce, ranks), 1 + 2 * (ranks - 1), 0.1) << ranks;
    EXPECT_NEAR(of("one_shot", Collective::all_reduce, ranks), 2, 0.1) << ranks;
    EXPECT_NEAR(of("two_shot", Collective::all_reduce, ranks), 3, 0.1) << ranks;
    EXPECT_NEAR(of("circulant", Collective::all_gather, ranks), 1 + log2_up(ranks), 0.1) << ranks;
    // A root that has sent to one sends to the next without waiting: the depth counts, not the steps.
    if (std::has_single_bit(static_cast<unsigned>(ranks))) {
      EXPECT_NEAR(of("binomial", Collective::broadcast, ranks), 1 + log2_up(ranks), 0.1) << ranks;
    }
  }
  EXPECT_NEAR(us("one_shot", {.ranks = 5}, Access::in_line, 64, hops), 1, 0.1) << "the line is the entry";
  EXPECT_NEAR(us("two_shot", {.ranks = 5}, Access::mapped, 64, hops), 2, 0.1)
      << "fused to one pass, then the last flags";
}

TEST(Cost, OfBytesAloneIsWhatARankMoves) {
  Machine bytes = idle();
  bytes.far.write.gbps.fill(1e-3);  // a byte in a µs
  constexpr double group = 16 * 9 * 5 * 4 * 64;
  for (const int ranks : {2, 3, 4, 5, 8}) {
    const Shape shape{.ranks = ranks};
    const double share = group * (ranks - 1) / ranks;
    EXPECT_NEAR(us("ring", shape, Access::slots, group, bytes), 2 * share, 0.01 * share) << ranks;
    EXPECT_NEAR(us("two_shot", shape, Access::slots, group, bytes), 2 * share, 0.01 * share) << ranks;
    EXPECT_NEAR(us("one_shot", shape, Access::slots, group, bytes), group * (ranks - 1), 0.01 * group) << ranks;
  }
}

// Twice as many tiles take twice as long once the pipeline is full, walked through or not.
TEST(Cost, OfManyTilesGrowsWithThem) {
  for (const char* const name : {"ring", "two_shot", "double_tree/8", "recursive_doubling"}) {
    const double once = us(name, {.ranks = 6}, Access::slots, 256 << 20, Machine{});
    const double twice = us(name, {.ranks = 6}, Access::slots, 512 << 20, Machine{});
    EXPECT_NEAR(twice / once, 2, 0.05) << name;
  }
}

TEST(Cost, OfRanksOnOneCoreIsAllTheirWork) {
  Machine bytes = idle();
  bytes.far.write.gbps.fill(1e-3);
  const double apart = us("ring", {.ranks = 4}, Access::slots, 1 << 16, bytes, {.cores = 4});
  EXPECT_NEAR(us("ring", {.ranks = 4}, Access::slots, 1 << 16, bytes, {.cores = 2}), 2 * apart, 0.05 * apart);
  EXPECT_NEAR(us("ring", {.ranks = 4}, Access::slots, 1 << 16, bytes, {.cores = 1}), 4 * apart, 0.05 * apart);
}

/// However the ranks take turns, two cores do not do more than twice the work of one.
TEST(Cost, OfManyTilesOnFewCoresIsAllTheirWork) {
  Machine slow = idle();
  for (Rates* rates : {&slow.read, &slow.write, &slow.far.read, &slow.far.write}) rates->gbps.fill(1);
  for (const Collective collective : {Collective::broadcast, Collective::all_reduce, Collective::all_gather})
    for (const Algorithm& algorithm : algorithms()) {
      const Shape shape{.collective = collective, .ranks = 8};
      if (!algorithm.supports(shape)) continue;
      const auto with = [&](int cores, std::size_t group_bytes) {
        return us(algorithm.name, shape, Access::slots, group_bytes, slow, {.cores = cores});
      };
      const double small = with(1, 4 << 20), large = with(1, 64 << 20);
      EXPECT_NEAR(large / small, 16, 0.5) << algorithm.name << " " << name(collective);
      EXPECT_GT(with(2, 64 << 20), 0.495 * large) << algorithm.name << " " << name(collective);
    }
}

TEST(Cost, IsFiniteForEveryAlgorithmAndGrowsWithTheCall) {
  for (const int ranks : {2, 5, 8})
    testing::for_every_algorithm(ranks, [](const Algorithm& algorithm, const Shape& shape) {
      if (shape.root != 0) return;
      for (const Access access : {Access::in_line, Access::mapped, Access::cma, Access::slots}) {
        if (!serves(algorithm, shape, access)) continue;
        const double small = us(algorithm.name, shape, access, 64, Machine{}, {.cores = 4});
        const double large = us(algorithm.name, shape, access, 1 << 20, Machine{}, {.cores = 4});
        EXPECT_GT(small, 0) << testing::text(algorithm, shape);
        EXPECT_TRUE(std::isfinite(large)) << testing::text(algorithm, shape);
        if (shape.collective != Collective::barrier) {
          EXPECT_GT(large, 2 * small) << testing::text(algorithm, shape);
        }
      }
    });
}

TEST(Machine, TravelsAsNumbersAndIsCheckedOnArrival) {
  Machine machine;
  machine.hop_us = 0.25;
  machine.far.write.gbps[4] = 3;
  const auto numbers = machine.numbers();
  const auto back = Machine::of(numbers);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, machine);
  for (const double bad : {0.0, -1.0, 1e9, std::nan(""), std::numeric_limits<double>::infinity()})
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      auto damaged = numbers;
      damaged[i] = bad;
      EXPECT_FALSE(Machine::of(damaged)) << i << ": " << bad;
    }
  EXPECT_FALSE(Machine::of(std::span(numbers).first(numbers.size() - 1)));
}

TEST(Envelope, HoldsTheFastestAtEverySizeItWasMadeFor) {
  for (const int ranks : {2, 3, 4})
    for (const Collective collective : {Collective::all_reduce, Collective::broadcast, Collective::all_to_all})
      for (const Access access : {Access::mapped, Access::cma, Access::slots}) {
        const Shape shape{.collective = collective, .ranks = ranks};
        const auto all = candidates(shape, access, "");
        ASSERT_FALSE(all.empty());
        const Envelope envelope(shape, access, all, Machine{}, {.cores = 8});
        for (std::size_t bytes = 16; bytes <= 1 << 26; bytes <<= 2) {
          const auto predicted = predictions(shape, access, bytes, all, Machine{}, {.cores = 8});
          const auto mine = std::ranges::find(predicted, &envelope.at(bytes), &Prediction::algorithm);
          ASSERT_NE(mine, predicted.end());
          // Each later one in a chain of near ties may be a hundredth faster than the one before.
          EXPECT_LE(mine->us, 1.02 * predicted[0].us)
              << name(collective) << " of " << ranks << " ranks over " << name(access) << ", " << bytes << " bytes";
          EXPECT_EQ(&envelope.at(bytes + bytes / 2), &envelope.at(bytes));
        }
      }
}

/// A job numbered host by host, and one numbered in turns, with the order that its start finds. Ranks send to their
/// neighbours by number first, so predictions differ a little.
TEST(Predictions, DoNotDependOnHowRanksAreNumbered) {
  for (const int cores : {2, 6}) {
    const Shape blocks{.ranks = 6, .levels = {{0, 0, 1, 1, 2, 2}}};
    const Shape turns{.ranks = 6, .levels = {{0, 1, 2, 0, 1, 2}}, .order = {0, 3, 1, 4, 2, 5}};
    const auto us = [&](const Algorithm& algorithm, const Shape& shape, std::vector<int> hosts) {
      const Algorithm* const one[] = {&algorithm};
      return predictions(shape, Access::slots, 1 << 20, one, {}, {.cores = cores, .hosts = std::move(hosts)})[0].us;
    };
    for (const Algorithm* const algorithm : candidates(blocks, Access::slots, "")) {
      const double expected = us(*algorithm, blocks, {0, 0, 2, 2, 4, 4});
      EXPECT_NEAR(us(*algorithm, turns, {0, 1, 2, 0, 1, 2}), expected, 0.05 * expected)
          << algorithm->name << ", " << cores;
    }
  }
}

TEST(Envelopes, AlwaysGiveWhatServes) {
  Envelopes envelopes;
  for (const int ranks : {1, 2, 5, 17, 40})
    for (const Shape& shape : testing::shapes(ranks))
      for (const Access access : {Access::in_line, Access::mapped, Access::cma, Access::slots})
        for (const std::string_view forced : {"", "ring", "^one_shot,two_shot", "no such thing"}) {
          const auto envelope = envelopes.of(shape, access, forced, Machine{}, {.cores = 2});
          for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{1} << 16, SIZE_MAX})
            ASSERT_TRUE(serves(envelope->at(bytes), shape, access)) << testing::text(envelope->at(bytes), shape);
          EXPECT_EQ(envelope, envelopes.of(shape, access, forced, Machine{}, {.cores = 2})) << "made once";
        }
}

TEST(Envelopes, FollowTheFilter) {
  Envelopes envelopes;
  const Shape shape{.ranks = 6};
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{1} << 20}) {
    EXPECT_EQ(envelopes.of(shape, Access::slots, "ring", Machine{}, {})->at(bytes).name, "ring");
    const std::string& left = envelopes.of(shape, Access::slots, "ring,circulant", Machine{}, {})->at(bytes).name;
    EXPECT_TRUE(left == "ring" || left == "circulant") << left;
    EXPECT_EQ(left, predictions(shape, Access::slots, bytes, candidates(shape, Access::slots, "ring,circulant"), {}, {})
                        .front()
                        .algorithm->name);
  }
}

}  // namespace
}  // namespace tutti
