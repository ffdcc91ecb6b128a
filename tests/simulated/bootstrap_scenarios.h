// Worlds of the bootstrap made from seeds, and what holds in each.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "simulated/bootstrap_world.h"
#include "support/seeds.h"

namespace tutti {

/// One world per seed, and what the seed says about it.
class SimulatedBootstrap : public testing::Test {
 protected:
  static constexpr std::int64_t s = BootstrapWorld::s;
  static constexpr std::uint64_t seed_count = 100;
  /// init_ms to be let in, once more to hear of the others, the root's words being a little quicker than that.
  static constexpr std::int64_t outcome_limit_ns = 2 * 30 * s + 5 * s;

  template <class Scenario>
  void for_each_seed(const SimOptions& options, Scenario scenario) {
    for (const std::uint64_t seed : seeds(seed_count)) {
      SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(seed));
      SimOptions seeded = options;
      seeded.seed = seed;
      std::mt19937_64 random(seed);
      ranks = 2 + static_cast<int>(random() % 7);
      rounds = rounds_min + static_cast<int>(random() % 3);
      odd = static_cast<int>(random() % static_cast<std::uint64_t>(ranks));
      BootstrapWorld world(seeded, ranks, rounds);
      scenario(world);
      EXPECT_TRUE(world.all_settled());
      EXPECT_TRUE(options.garble > 0 || world.wrong_blob.empty()) << world.wrong_blob;
      for (const Outcome& outcome : world.outcomes) EXPECT_LE(outcome.at_ns, outcome_limit_ns);
      // A root whom no rank ever reached waits on.
      const bool ended = world.root_ends_after_all_left(100 * s);
      EXPECT_TRUE(ended || options.garble > 0);
      EXPECT_EQ(world.system.open_sockets(), 0u);
      if (HasFailure()) return;
    }
  }
  void expect_all_complete(const BootstrapWorld& world) const {
    for (const Outcome& outcome : world.outcomes) {
      EXPECT_FALSE(outcome.error) << outcome.error->text();
      EXPECT_EQ(outcome.rounds, rounds);
    }
  }
  static void expect_error(const Outcome& outcome, Code code, const std::string& words) {
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->code, code) << outcome.error->text();
    EXPECT_NE(outcome.error->what.find(words), std::string::npos) << outcome.error->text();
  }

  int ranks = 0;
  int rounds_min = 1;
  int rounds = 0;
  int odd = 0;  ///< the rank that something is wrong with
};

}  // namespace tutti
