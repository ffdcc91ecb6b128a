// Do calls with a count per rank arrive as they were sent, whatever the sizes, on a memory as weak as a GPU's?
#include "kernels/exchange.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "support/exchange_world.h"

namespace tutti {
namespace {

using namespace testing;

/// False: no rank could go on any more.
bool run(ExchangeWorld& world, std::uint64_t seed) {
  bool stuck = false;
  return run_on_fibers(world.launch(), {.threads = 2,
                                        .seed = seed,
                                        .on_deadlock =
                                            [&] {
                                              stuck = true;
                                              world.abort();
                                            }}) &&
         !stuck;
}

TEST(Exchange, BlocksOfAllSizesArrive) {
  for (int ranks = 1; ranks <= 6; ++ranks)
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(share_of(20)); ++seed) {
      ExchangeWorld world(ranks, test_seed() + seed);
      for (int call = 0; call < 3; ++call) ASSERT_TRUE(run(world, seed + static_cast<std::uint64_t>(call))) << seed;
      ASSERT_EQ(world.compare(), "") << ranks << " ranks, seed " << seed;
    }
}

TEST(Exchange, ARankThatExpectsAnotherSizeEndsTheCall) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    ExchangeWorld world(3, seed);
    const std::uint64_t sent = world.of(2, 1).sent;
    world.of(1, 2).received = world.of(1, 2).all_received = sent + 4;
    EXPECT_TRUE(run(world, seed));
    EXPECT_EQ(world.record(1).state, device::ErrorRecord::counts);
    EXPECT_EQ(world.record(1).peer, 2u);
    EXPECT_EQ(world.record(1).own, sent + 4);
    EXPECT_EQ(world.record(1).theirs, sent);
    EXPECT_EQ(world.record(2).state, device::ErrorRecord::counts);
    EXPECT_EQ(world.record(2).peer, 1u);
    EXPECT_EQ(world.record(2).verb, static_cast<std::uint32_t>(Verb::acquire));
  }
}

TEST(Exchange, APeerThatNeverComesIsNamed) {
  ExchangeWorld world(3, 1);
  world.call().local_ranks = 2;  // the last is in a launch that never begins
  world.call().limit_ns = 1'000'000'000;
  EXPECT_TRUE(run(world, 1));
  for (const int rank : {0, 1}) {
    EXPECT_NE(world.record(rank).state, device::ErrorRecord::none);
    EXPECT_EQ(world.record(rank).peer, 2u);
  }
}

}  // namespace
}  // namespace tutti
