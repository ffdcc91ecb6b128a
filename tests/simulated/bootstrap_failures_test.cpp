// A start that fails: each rank that lives is told why, within its limit.
#include <algorithm>

#include "base/host.h"
#include "bootstrap/bootstrap_messages.h"
#include "simulated/bootstrap_scenarios.h"

namespace tutti {
namespace {

constexpr std::int64_t s = BootstrapWorld::s;  // of the test without a world of seeds, too

TEST_F(SimulatedBootstrap, EveryRankEndsWhenConnectionsBreak) {
  for_each_seed({.reset = 0.03}, [](BootstrapWorld& world) {
    world.open_root();
    world.add_all();
    world.run_until_settled();
    for (const Outcome& outcome : world.outcomes)
      if (outcome.error) {
        EXPECT_EQ(outcome.error->code, Code::remote) << outcome.error->text();
      }
    world.system.options().reset = 0;
  });
}

/// Every frame of a conversation, with mistakes in it: nothing is believed that would hurt.
TEST_F(SimulatedBootstrap, EveryRankEndsWhenFramesAreGarbled) {
  for (const double garble : {0.01, 0.05, 0.3})
    for_each_seed({.garble = garble}, [](BootstrapWorld& world) {
      world.open_root();
      world.add_all();
      world.run_until_settled();
      world.system.options().garble = 0;
    });
}

TEST_F(SimulatedBootstrap, ARootWithoutDescriptorsSaysSo) {
  for_each_seed({.accepted_max = 1}, [](BootstrapWorld& world) {
    world.open_root();
    world.add_all();
    world.run_until_settled();
    for (const Outcome& outcome : world.outcomes) {
      expect_error(outcome, Code::system, "and no more: accept: Too many open files (errno 24): raise ulimit -n");
      EXPECT_LE(outcome.at_ns, 5 * s);
    }
  });
}

TEST_F(SimulatedBootstrap, MissingRankIsNamed) {
  for_each_seed({}, [this](BootstrapWorld& world) {
    world.open_root();
    for (int rank = 0; rank < ranks; ++rank)
      if (rank != odd) world.add(world.who(rank));
    world.run_until_settled();
    const std::string words = "missing " + std::to_string(odd) + " (never seen)";
    for (const Outcome& outcome : world.outcomes) {
      expect_error(outcome, Code::timeout, words);
      EXPECT_EQ(outcome.error->peer, odd);
      EXPECT_LE(outcome.at_ns, 32 * s);
    }
    ASSERT_EQ(world.warnings.size(), 1u);
    EXPECT_NE(world.warnings[0].find(words), std::string::npos) << world.warnings[0];
    EXPECT_NE(world.warnings[0].find("Giving up at 30 s"), std::string::npos) << world.warnings[0];
  });
}

/// From the first exchange on, however long each of them took.
TEST(BootstrapLimit, IsOneForAllExchanges) {
  SimSystem network{SimOptions{}};
  const Secret secret = *fresh_secret();
  const auto root = *BootstrapRoot::open(network, {.host = "10.0.0.1"}, secret, {.init_ms = 30'000});
  const UniqueId id{.root = root->address(), .secret = secret};
  const std::int64_t begin_ns = network.now_ns();
  Bootstrap punctual(network, id, {.rank = 0, .ranks = 2}, {.init_ms = 30'000});
  Bootstrap late(network, id, {.rank = 1, .ranks = 2}, {.init_ms = 30'000});
  const auto turn = [&] {
    network.poll({}, s / 100);
    (void)root->advance();
    return punctual.advance();
  };
  punctual.exchange({});
  while (network.now_ns() < begin_ns + 20 * s) ASSERT_FALSE(*turn());
  late.exchange({});
  while (!*turn()) (void)*late.advance();
  punctual.exchange({});
  Result<bool> done = false;
  while (done && network.now_ns() < begin_ns + 100 * s) done = turn();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::timeout);
  EXPECT_NE(done.error().what.find("missing 1 ("), std::string::npos) << done.error().text();
  EXPECT_LE(network.now_ns(), begin_ns + 31 * s);
}

TEST_F(SimulatedBootstrap, RankWithAnotherSecretIsToldAndNamed) {
  for_each_seed({}, [this](BootstrapWorld& world) {
    Secret other = world.secret;
    other[5] ^= std::byte{1};
    world.open_root();
    for (int rank = 0; rank < ranks; ++rank) world.add(world.who(rank), rank == odd ? other : world.secret);
    world.run_until_settled();
    for (int rank = 0; rank < ranks; ++rank) {
      const Outcome& outcome = world.outcomes[static_cast<std::size_t>(rank)];
      if (rank == odd) {
        expect_error(outcome, Code::invalid_usage, "another unique id");
        EXPECT_LE(outcome.at_ns, 1 * s);
      } else {
        expect_error(outcome, Code::timeout, std::to_string(odd) + " (10.0.0.1: wrong id)");
      }
    }
  });
}

TEST_F(SimulatedBootstrap, TwoOfOneRankAreNamedToAll) {
  for_each_seed({}, [this](BootstrapWorld& world) {
    world.open_root();
    for (int rank = 0; rank < ranks; ++rank) {
      auto who = world.who(rank);
      if (rank == odd) who.rank = (rank + 1) % ranks;
      world.add(who);
    }
    world.run_until_settled();
    const std::string words = "rank " + std::to_string((odd + 1) % ranks) + " is claimed by two processes: pid ";
    for (const Outcome& outcome : world.outcomes) {
      expect_error(outcome, Code::invalid_usage, words);
      EXPECT_LE(outcome.at_ns, 1 * s);
    }
  });
}

TEST_F(SimulatedBootstrap, DifferencesAreNamedToAll) {
  for_each_seed({}, [this](BootstrapWorld& world) {
    const int kind = static_cast<int>(world.system.pick(0, 4));
    world.open_root();
    for (int rank = 0; rank < ranks; ++rank) {
      auto who = world.who(rank);
      if (rank == odd && kind == 0) who.ranks = ranks + 1;
      if (rank == odd && kind == 1) who.version = 300;
      if (rank == odd && kind == 2) who.settings = 1, who.settings_text = "TUTTI_ALGO=ring";
      if (rank == odd && kind == 3) who.rank = ranks;
      if (rank == odd && kind == 4) who.source = 1;
      world.add(who);
    }
    world.run_until_settled();
    const char* const words[] = {"was told of", "has tutti 0.3.0", "has TUTTI_ALGO=ring, rank", "claims to be rank",
                                 "has another build of tutti"};
    for (const Outcome& outcome : world.outcomes) {
      expect_error(outcome, Code::invalid_usage, kind == 1 ? "tutti 0.3.0" : words[kind]);
      EXPECT_LE(outcome.at_ns, 1 * s);
    }
  });
}

/// Two have heard that they disagree, and were told of two ranks and of three: the third is still to hear it.
TEST_F(SimulatedBootstrap, AllOfTheLargerNumberHearThatNumbersDiffer) {
  for_each_seed({}, [](BootstrapWorld& world) {
    const auto add = [&](int rank, int of) {
      auto who = world.who(rank);
      who.ranks = of;
      world.add(who);
    };
    world.open_root();
    add(0, 2);
    add(1, 3);
    world.run_until_settled();
    const std::int64_t late_ns = world.elapsed_ns() + 2'500 * BootstrapWorld::ms;
    while (world.elapsed_ns() < late_ns) world.turn();
    add(2, 3);
    world.run_until_settled();
    for (const Outcome& outcome : world.outcomes) expect_error(outcome, Code::invalid_usage, "was told of");
    EXPECT_LE(world.outcomes.back().at_ns, late_ns + 1 * s);
  });
}

/// Somebody goes at any time: whoever still waits for it hears so, nobody hears anything else.
TEST_F(SimulatedBootstrap, LostRankIsNamedToThoseWhoWait) {
  for_each_seed({}, [this](BootstrapWorld& world) {
    const bool politely = world.system.chance(0.5);
    world.open_root();
    world.add_all();
    while (!world.all_settled() && world.system.chance(0.95)) world.turn();
    const auto gone = static_cast<std::size_t>(odd);
    politely ? world.quit(gone) : world.kill(gone);
    const std::int64_t gone_ns = world.elapsed_ns();
    world.run_until_settled();
    for (std::size_t i = 0; i < world.outcomes.size(); ++i) {
      EXPECT_GE(world.outcomes[i].rounds, world.outcomes[gone].rounds) << "what was complete for one is so for all";
      if (i == gone || !world.outcomes[i].error) continue;
      const Error& error = *world.outcomes[i].error;
      // Gone before it was let in, it is missing; gone later, it is lost.
      EXPECT_EQ(error.peer, odd) << error.text();
      EXPECT_TRUE(error.code == Code::remote || error.code == Code::timeout) << error.text();
      if (error.code == Code::remote) {
        EXPECT_LE(world.outcomes[i].at_ns, gone_ns + 1 * s);
      }
    }
  });
}

TEST_F(SimulatedBootstrap, WithoutARootTheLimitEndsIt) {
  for_each_seed({}, [](BootstrapWorld& world) {
    world.root_may_come_later = true;
    world.add_all();
    world.run_until_settled();
    for (const Outcome& outcome : world.outcomes) {
      expect_error(outcome, Code::timeout, "Connection refused");
      EXPECT_LE(outcome.at_ns, 33 * s);
    }
    world.root_ended = true;
  });
}

/// Who made the id listened before the ranks knew it.
TEST_F(SimulatedBootstrap, ARootThatHasGoneIsNotWaitedFor) {
  for_each_seed({.to_itself = 0.3}, [](BootstrapWorld& world) {
    world.add_all();
    world.run_until_settled();
    for (const Outcome& outcome : world.outcomes) {
      expect_error(outcome, Code::remote, "nobody listens any more");
      EXPECT_GE(outcome.at_ns, 1 * s);
      EXPECT_LE(outcome.at_ns, 2 * s);
    }
    world.root_ended = true;
  });
}

/// It says why, from its own process or that of the root, before the others come, meanwhile or afterwards.
TEST_F(SimulatedBootstrap, ARankThatCannotTakePartTellsAll) {
  for_each_seed({}, [this](BootstrapWorld& world) {
    const Error why{.code = Code::system, .what = "make shared memory", .sys_errno = 24};
    const auto says = world.system.pick(0, ranks);  // after so many ranks have come
    const bool at_the_root = world.system.chance(0.5);
    const auto say = [&] {
      if (at_the_root)
        world.root->excuse(odd, ranks, why);
      else
        world.add_excuse(world.who(odd), why);
    };
    world.open_root();
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == says) say();
      if (rank != odd) world.add(world.who(rank));
      for (auto turns = world.system.pick(0, 2); turns > 0; --turns) world.turn();
    }
    if (says == ranks) say();
    const std::int64_t said_ns = world.elapsed_ns();
    world.run_until_settled();
    for (const Outcome& outcome : world.outcomes) {
      expect_error(outcome, Code::system, "rank " + std::to_string(odd) + " (");
      expect_error(outcome, Code::system, "could not join: system error: make shared memory: Too many open files");
      EXPECT_EQ(outcome.error->peer, odd);
      EXPECT_LE(outcome.at_ns, said_ns + 2 * s);
    }
    while (!world.all_excused() && world.elapsed_ns() < said_ns + 2 * s) world.turn();
    EXPECT_TRUE(world.all_excused());
    // All know it, so the root need not wait for more.
    while (!world.root_ended && world.elapsed_ns() < said_ns + 6 * s) world.turn();
    EXPECT_TRUE(world.root_ended);
  });
}

TEST_F(SimulatedBootstrap, TheRootIsLost) {
  for_each_seed({}, [](BootstrapWorld& world) {
    world.open_root();
    world.add_all();
    while (!world.all_settled() && world.system.chance(0.95)) world.turn();
    world.root.reset();
    world.root_ended = true;
    world.run_until_settled();
    for (const Outcome& outcome : world.outcomes)
      if (outcome.error) {
        EXPECT_TRUE(outcome.error->code == Code::remote || outcome.error->code == Code::timeout);
      }
  });
}

}  // namespace
}  // namespace tutti
