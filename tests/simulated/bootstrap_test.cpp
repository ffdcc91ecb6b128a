// Whatever the network and the callers do, all ranks meet.
#include <algorithm>

#include "base/host.h"
#include "bootstrap/bootstrap_messages.h"
#include "net/handshake.h"
#include "net/wire.h"
#include "simulated/bootstrap_scenarios.h"

namespace tutti {
namespace {

TEST_F(SimulatedBootstrap, CompletesInAnyOrder) {
  for_each_seed({}, [this](BootstrapWorld& world) {
    world.open_root();
    world.add_all();
    world.run_until_settled();
    expect_all_complete(world);
    EXPECT_TRUE(world.warnings.empty());

    Socket late = *world.system.connect(world.at);
    world.system.poll({}, 1 * s);
    const auto refused = world.system.send(late, Bytes(1));
    EXPECT_FALSE(refused) << "nobody listens when all are inside";
  });
}

/// A rank of the root's process may end the process when it has its answer. What has left arrives; more does not leave.
TEST_F(SimulatedBootstrap, CompletesThoughTheRootsProcessEndsWithItsOwnAnswer) {
  for (const std::uint64_t seed : seeds(seed_count)) {
    SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    ranks = 2 + static_cast<int>(random() % 12);
    rounds = 1;
    // Little is taken at a time, so the root has more to send when it has sent to the first of them.
    BootstrapWorld world({.seed = seed, .buffer_bytes = 700}, ranks, rounds);
    world.open_root();
    const int here = static_cast<int>(random() % static_cast<std::uint64_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      Bootstrap::Who who = world.who(rank);
      if (rank == here) who.process = this_process();
      world.add(who);
    }
    while (!world.settled(static_cast<std::size_t>(here)) && world.elapsed_ns() < 100 * s) world.turn();
    world.root.reset();
    world.quit(static_cast<std::size_t>(here));
    world.run_until_settled();
    expect_all_complete(world);
    if (HasFailure()) return;
  }
}

TEST_F(SimulatedBootstrap, CompletesSoonWhenTheRootIsLate) {
  for_each_seed({.to_itself = 0.3}, [this](BootstrapWorld& world) {
    world.root_may_come_later = true;
    world.add_all();
    const std::int64_t opens = world.system.pick(0, 20 * s);
    while (world.elapsed_ns() < opens) world.turn();
    world.open_root();
    world.run_until_settled();
    expect_all_complete(world);
    for (const Outcome& outcome : world.outcomes) EXPECT_LE(outcome.at_ns, opens + s / 2);
  });
}

TEST_F(SimulatedBootstrap, CompletesThoughConnectsAreRefusedOrSwallowed) {
  for_each_seed({.refuse = 0.4, .silence = 0.2}, [this](BootstrapWorld& world) {
    world.root_may_come_later = true;
    world.open_root();
    world.add_all();
    world.run_until_settled();
    expect_all_complete(world);
  });
}

TEST_F(SimulatedBootstrap, CompletesAmongStrangers) {
  for_each_seed({}, [this](BootstrapWorld& world) {
    world.open_root();
    std::size_t most = 0;
    const auto turn = [&] {
      world.turn();
      most = std::max(most, world.system.accepted_sockets());
    };
    for (int i = 0; i < 100; ++i) {
      Bytes noise(static_cast<std::size_t>(world.system.pick(0, 200)));
      for (std::byte& byte : noise) byte = static_cast<std::byte>(world.system.pick(0, 255));
      if (world.system.chance(0.5)) noise.resize(std::min<std::size_t>(noise.size(), 47));  // waits for its end
      world.add_stranger(noise);
      if (world.system.chance(0.3)) turn();
    }
    for (int rank = 1; rank < ranks; ++rank) world.add(world.who(rank));
    // Slow callers have two seconds, then they are not there any more.
    while (world.elapsed_ns() < 3 * s) turn();
    // A rank on its way to its place is connected twice.
    EXPECT_LE(most, 64u + 2 * static_cast<std::size_t>(ranks));
    EXPECT_EQ(world.system.accepted_sockets(), static_cast<std::size_t>(ranks) - 1);
    world.add(world.who(0));
    world.run_until_settled();
    expect_all_complete(world);
    // The root says so when it knows that all ranks have its answer.
    const auto counts = [](const std::string& text) { return text.find("without a valid greeting") != text.npos; };
    const std::int64_t limit_ns = world.elapsed_ns() + s;
    while (world.warnings.empty() && world.elapsed_ns() < limit_ns) world.turn();
    EXPECT_TRUE(std::ranges::any_of(world.warnings, counts));
  });
}

/// A rank that gets no core after its connection is made calls again. That is nobody without a greeting.
TEST_F(SimulatedBootstrap, ARankThatIsSlowToGreetIsNoStranger) {
  for_each_seed({}, [this](BootstrapWorld& world) {
    world.open_root();
    world.add_all();
    for (int i = world.system.pick(1, 4); i > 0; --i) world.turn();
    world.hold(odd);
    while (world.elapsed_ns() < 3 * s) world.turn();
    world.release(odd);
    world.run_until_settled();
    expect_all_complete(world);
    for (const std::string& warning : world.warnings)
      EXPECT_EQ(warning.find("without a valid greeting"), std::string::npos) << warning;
  });
}

/// Somebody who knows the frames, but not the secret.
TEST_F(SimulatedBootstrap, AForgedJoinIsNotBelieved) {
  for_each_seed({}, [this](BootstrapWorld& world) {
    world.open_root();
    Bytes words = handshake::RankSide::begin(odd, Secret{})->hello();
    ByteWriter proof;
    proof.number(std::uint64_t{0x666f'6f72'7069'7474});
    proof.raw(Digest{});
    words.insert(words.end(), proof.bytes().begin(), proof.bytes().end());
    const auto join = frame(FrameKind::join, bootstrap::write_join(world.who(odd)));
    words.insert(words.end(), join->begin(), join->end());
    world.add_stranger(words);
    while (world.elapsed_ns() < s) world.turn();
    world.add_all();
    world.run_until_settled();
    expect_all_complete(world);
  });
}

TEST_F(SimulatedBootstrap, CompletesWhenDescriptorsComeBack) {
  for_each_seed({.accepted_max = 1}, [this](BootstrapWorld& world) {
    const auto turn_until = [&world](std::int64_t then) {
      while (world.elapsed_ns() < then) world.turn();
    };
    world.open_root();
    for (int rank = 1; rank < ranks; ++rank) world.add(world.who(rank));
    turn_until(1 * s);
    world.system.options().accepted_max = 100;
    turn_until(5 * s);
    // Short again, for a short time again.
    world.system.options().accepted_max = 0;
    world.add(world.who(0));
    turn_until(6 * s);
    world.system.options().accepted_max = 100;
    world.run_until_settled();
    expect_all_complete(world);
  });
}

TEST_F(SimulatedBootstrap, OneTooManyHarmsNobodyWhoHasMet) {
  for_each_seed({}, [this](BootstrapWorld& world) {
    world.open_root();
    world.add_all();
    while (!world.all_settled() && world.system.chance(0.9)) world.turn();
    const std::size_t extra = world.add(world.who(odd));
    world.run_until_settled();
    // Whoever came first is the one; the other is told, or finds the door closed.
    const bool met = !world.outcomes[static_cast<std::size_t>((odd + 1) % ranks)].error;
    const auto original = static_cast<std::size_t>(odd);
    if (met) {
      EXPECT_NE(world.outcomes[extra].error.has_value(), world.outcomes[original].error.has_value());
    }
    for (std::size_t i = 0; i <= extra; ++i) {
      if (!met) {
        expect_error(world.outcomes[i], Code::invalid_usage, "is claimed by two processes");
      } else if (i != extra && i != original) {
        EXPECT_FALSE(world.outcomes[i].error) << world.outcomes[i].error->text();
      }
    }
  });
}

/// It was let in before the doors closed, and shows who it is only when all others have met.
TEST_F(SimulatedBootstrap, OneTooManyWhoIsSlowIsToldAlone) {
  rounds_min = 2;
  for_each_seed({}, [this](BootstrapWorld& world) {
    world.open_root();
    for (int rank = 0; rank < ranks; ++rank) world.add(world.who(rank));
    const auto last = static_cast<std::size_t>(odd);
    world.hold(last);
    while (world.elapsed_ns() < s) world.turn();
    const std::size_t extra = world.add(world.who(odd));
    while (world.system.accepted_sockets() < static_cast<std::size_t>(ranks)) world.turn();
    world.hold(extra);
    world.release(last);
    while (world.outcomes[last].rounds == 0) world.turn();
    world.hold(last);
    world.release(extra);
    while (!world.settled(extra)) world.turn();
    expect_error(world.outcomes[extra], Code::invalid_usage, "is claimed by two processes");
    world.release(last);
    world.run_until_settled();
    for (std::size_t i = 0; i < extra; ++i) EXPECT_EQ(world.outcomes[i].rounds, rounds);
  });
}

}  // namespace
}  // namespace tutti
