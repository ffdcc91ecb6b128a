// Communicators of several hosts on a seeded clock and network: all ranks in one thread, advanced in random order.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "call/layout.h"
#include "net/control_graph.h"
#include "simulated/hosts_world.h"
#include "support/seeds.h"

namespace tutti {
namespace {

constexpr std::uint64_t seed_count = 10;

using World = HostsWorld;

void expect_all_done(const std::vector<Ended>& ended) {
  for (const auto& one : ended) ASSERT_TRUE(one && *one) << (one ? one->error().text() : "never ended");
}

/// Sums of small integers in every element, so that any order gives one result.
void all_reduce(World& world, std::size_t count, std::int64_t limit_ns = 20 * second_ns) {
  std::vector<std::vector<std::int64_t>> in(static_cast<std::size_t>(world.ranks));
  std::vector<std::vector<std::int64_t>> out(in.size(), std::vector<std::int64_t>(count, -1));
  std::vector<std::int64_t> expected(count);
  for (auto& values : in) {
    values.resize(count);
    for (auto& value : values) value = static_cast<std::int64_t>(world.random() % 1000);
    for (std::size_t i = 0; i < count; ++i) expected[i] += values[i];
  }
  const auto request = [&](Rank rank) {
    const auto i = static_cast<std::size_t>(rank);
    return Request{.collective = Collective::all_reduce,
                   .input = reinterpret_cast<const std::byte*>(in[i].data()),
                   .output = reinterpret_cast<std::byte*>(out[i].data()),
                   .count = count,
                   .type = DataType::int64};
  };
  expect_all_done(world.call(request, limit_ns));
  for (const auto& values : out) ASSERT_EQ(values, expected);
}

class SimulatedHosts : public testing::Test {
 protected:
  static void for_each_seed(const std::function<void(World&)>& scenario, int silence_ms = 4000) {
    for (const std::uint64_t seed : seeds(seed_count)) {
      SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(seed));
      World world(seed, silence_ms);
      ASSERT_TRUE(world.start());
      scenario(world);
      if (HasFailure()) return;
      world.stop();
      if (HasFailure()) return;
    }
  }
};

TEST_F(SimulatedHosts, CallsGiveWhatTheyShould) {
  for_each_seed([](World& world) {
    for (const std::size_t count : {1, 0, 17, 5000, 3, 40000}) {
      all_reduce(world, count);
      if (HasFatalFailure()) return;
    }
    expect_all_done(world.call([](Rank) { return Request{.collective = Collective::barrier}; }, 10 * second_ns));
  });
}

/// Nobody gets to run for a second or so, while channels are opened: a peer that is slow to answer is no lost one.
TEST_F(SimulatedHosts, ChannelsOpenOnBusyMachinesToo) {
  for_each_seed(
      [](World& world) {
        world.step_ns_max = second_ns / 4;
        all_reduce(world, 100, 1'000 * second_ns);
        world.step_ns_max = second_ns / 5'000;
        if (HasFatalFailure()) return;
        all_reduce(world, 100);
      },
      /*silence_ms=*/0);
}

/// Whatever each rank gives to each other one.
TEST_F(SimulatedHosts, CountsPerRankNeedNotBeKnownToAll) {
  for_each_seed([](World& world) {
    const auto n = static_cast<std::size_t>(world.ranks);
    std::vector<std::vector<std::size_t>> counts(n, std::vector<std::size_t>(n));
    for (auto& row : counts)
      for (auto& count : row) count = world.random() % 3 == 0 ? 0 : world.random() % 2000;
    std::vector<std::vector<std::int32_t>> in(n), out(n);
    std::vector<std::vector<std::size_t>> received(n, std::vector<std::size_t>(n));
    for (std::size_t from = 0; from < n; ++from)
      for (std::size_t to = 0; to < n; ++to) {
        received[to][from] = counts[from][to];
        for (std::size_t i = 0; i < counts[from][to]; ++i)
          in[from].push_back(static_cast<std::int32_t>(from * 1'000'000 + to * 10'000 + i));
      }
    const auto request = [&](Rank rank) {
      const auto r = static_cast<std::size_t>(rank);
      out[r].assign(std::accumulate(received[r].begin(), received[r].end(), std::size_t{1}), -1);
      in[r].push_back(0);  // so that there is a buffer
      Request made{.collective = Collective::all_to_all,
                   .input = reinterpret_cast<const std::byte*>(in[r].data()),
                   .output = reinterpret_cast<std::byte*>(out[r].data()),
                   .type = DataType::int32};
      EXPECT_TRUE(lay_out(made, rank, world.ranks, {counts[r].data(), nullptr}, {received[r].data(), nullptr}));
      return made;
    };
    expect_all_done(world.call(request, 20 * second_ns));
    for (std::size_t to = 0; to < n; ++to) {
      std::size_t at = 0;
      for (std::size_t from = 0; from < n; ++from)
        for (std::size_t i = 0; i < counts[from][to]; ++i)
          ASSERT_EQ(out[to][at++], static_cast<std::int32_t>(from * 1'000'000 + to * 10'000 + i));
    }
  });
}

TEST_F(SimulatedHosts, AMismatchIsToldToAllRanks) {
  for_each_seed([](World& world) {
    const Rank odd = static_cast<Rank>(world.random() % static_cast<std::uint64_t>(world.ranks));
    std::vector<std::int64_t> in(200, 1);
    std::vector<std::vector<std::int64_t>> out(static_cast<std::size_t>(world.ranks), std::vector<std::int64_t>(200));
    const auto request = [&](Rank rank) {
      return Request{.collective = Collective::all_reduce,
                     .input = reinterpret_cast<const std::byte*>(in.data()),
                     .output = reinterpret_cast<std::byte*>(out[static_cast<std::size_t>(rank)].data()),
                     .count = rank == odd ? std::size_t{199} : std::size_t{200},
                     .type = DataType::int64};
    };
    for (const auto& one : world.call(request, second_ns)) {
      ASSERT_TRUE(one) << "not told within a second";
      ASSERT_FALSE(*one);
      EXPECT_EQ(one->error().code, Code::invalid_usage) << one->error().text();
      EXPECT_NE(one->error().what.find(fmt::format("rank {}: #1 AllReduce count=199", odd)), std::string::npos)
          << one->error().text();
    }
  });
}

/// No data meets: all that ranks have of each other's calls is what they tell. One difference, and hundreds of equal
/// calls before anybody looks.
TEST_F(SimulatedHosts, OneDifferentCallAmongManyIsNamedToAll) {
  for_each_seed([](World& world) {
    const Rank odd = static_cast<Rank>(world.random() % static_cast<std::uint64_t>(world.ranks));
    for (Rank rank = 0; rank < world.ranks; ++rank)
      for (std::uint64_t call = 1; call <= 1'000; ++call)
        world.made[static_cast<std::size_t>(rank)]->marks().sign(
            call, {.collective = static_cast<std::uint8_t>(Collective::broadcast),
                   .root = rank == odd && call == 5 ? 1u : 0u,
                   .count = call});
    // A name is waited for half a second, in which each host must have several turns to send its calls.
    world.idle(2 * second_ns, 2'000'000);
    for (const auto& communicator : world.made) {
      ASSERT_TRUE(communicator->failed());
      const Error error = communicator->failure().error();
      EXPECT_EQ(error.code, Code::invalid_usage);
      EXPECT_NE(error.what.find(fmt::format("rank {}: #5 Broadcast", odd)), std::string::npos) << error.what;
      EXPECT_NE(error.what.find("root=0"), std::string::npos) << error.what;
      EXPECT_NE(error.what.find("root=1"), std::string::npos) << error.what;
    }
  });
}

/// Ranks may be thousands of calls apart, and nobody is held up or accused for it.
TEST_F(SimulatedHosts, RanksThatAreFarApartInEqualCallsAreNotAccused) {
  for_each_seed([](World& world) {
    std::vector<std::uint64_t> at(static_cast<std::size_t>(world.ranks));
    for (int turn = 0; turn < 200; ++turn) {
      const auto rank = static_cast<std::size_t>(world.random() % at.size());
      for (std::uint64_t more = world.random() % 5'000; more > 0; --more)
        world.made[rank]->marks().sign(
            ++at[rank], {.collective = static_cast<std::uint8_t>(Collective::broadcast), .count = at[rank]});
      world.idle(static_cast<std::int64_t>(world.random() % 200) * 1'000'000);
    }
    for (const auto& communicator : world.made) EXPECT_FALSE(communicator->failed());
  });
}

TEST_F(SimulatedHosts, AnAbortEndsAllRanksWithinASecond) {
  for_each_seed([](World& world) {
    const Rank aborting = static_cast<Rank>(world.random() % static_cast<std::uint64_t>(world.ranks));
    std::vector<std::int64_t> in(30'000, 1);
    std::vector<std::vector<std::int64_t>> out(static_cast<std::size_t>(world.ranks), in);
    std::vector<std::unique_ptr<Batch>> batches;
    std::vector<Operation*> operations(static_cast<std::size_t>(world.ranks));
    for (Rank rank = 0; rank < world.ranks; ++rank) {
      const auto i = static_cast<std::size_t>(rank);
      if (rank == aborting) continue;  // never calls
      batches.push_back(std::make_unique<Batch>(world.made[i]));
      batches.back()->add(Request{.collective = Collective::all_reduce,
                                  .input = reinterpret_cast<const std::byte*>(in.data()),
                                  .output = reinterpret_cast<std::byte*>(out[i].data()),
                                  .count = in.size(),
                                  .type = DataType::int64});
      batches.back()->enqueue();
      operations[i] = batches.back().get();
    }
    for (const auto& one : world.run(operations, second_ns / 10)) ASSERT_FALSE(one) << "without the last rank?";
    world.made[static_cast<std::size_t>(aborting)]->abort();
    const auto ended = world.run(operations, second_ns);
    for (std::size_t i = 0; i < ended.size(); ++i) {
      if (operations[i] == nullptr) continue;
      ASSERT_TRUE(ended[i]) << "still waiting a second after the abort";
      ASSERT_FALSE(*ended[i]);
      EXPECT_EQ(ended[i]->error().peer, aborting) << ended[i]->error().text();
    }
  });
}

/// The ranks of all other hosts have been told of a rank of `host`, in these words.
void expect_blamed(const World& world, const std::vector<Ended>& ended, int host, const char* words) {
  for (Rank rank = 0; rank < world.ranks; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    if (world.host_of[i] == host) continue;
    ASSERT_TRUE(ended[i]) << "rank " << rank << " was not told in time";
    ASSERT_FALSE(*ended[i]);
    const Error& error = ended[i]->error();
    EXPECT_EQ(error.code, Code::remote) << error.text();
    ASSERT_GE(error.peer, 0) << error.text();
    EXPECT_EQ(world.host_of[static_cast<std::size_t>(error.peer)], host) << error.text();
    EXPECT_NE(error.what.find(words), std::string::npos) << error.text();
  }
}

/// A host dies, and all others are told which within that time, in their next call.
void expect_told_of_loss(World& world, std::int64_t limit_ns) {
  const int lost = static_cast<int>(world.random() % world.processes.size());
  world.dead.insert(lost);
  world.system.kill(lost);
  std::vector<std::int64_t> in(30'000, 1);
  std::vector<std::vector<std::int64_t>> out(static_cast<std::size_t>(world.ranks), in);
  const auto request = [&](Rank rank) {
    return Request{.collective = Collective::all_reduce,
                   .input = reinterpret_cast<const std::byte*>(in.data()),
                   .output = reinterpret_cast<std::byte*>(out[static_cast<std::size_t>(rank)].data()),
                   .count = in.size(),
                   .type = DataType::int64};
  };
  const auto ended = world.call(request, limit_ns);
  expect_blamed(world, ended, lost, "lost");
}

TEST_F(SimulatedHosts, TheLossOfAHostIsToldToAllSurvivors) {
  for_each_seed([](World& world) {
    all_reduce(world, 100);
    expect_told_of_loss(world, 2 * second_ns);
  });
}

/// Where no channel is open, nothing is on its way that could come later.
TEST_F(SimulatedHosts, ALossBeforeTheFirstCallIsToldSooner) {
  for_each_seed([](World& world) { expect_told_of_loss(world, second_ns / 5); });
}

/// All ranks but those of the silent host are told of it within that time, while they wait in a call.
void expect_told_of_silence(World& world, int silent, std::int64_t limit_ns) {
  std::vector<std::int64_t> in(100, 1);
  std::vector<std::vector<std::int64_t>> out(static_cast<std::size_t>(world.ranks), in);
  const auto request = [&](Rank rank) {
    return Request{.collective = Collective::all_reduce,
                   .input = reinterpret_cast<const std::byte*>(in.data()),
                   .output = reinterpret_cast<std::byte*>(out[static_cast<std::size_t>(rank)].data()),
                   .count = in.size(),
                   .type = DataType::int64};
  };
  world.step_ns_max = second_ns / 500;
  const auto ended = world.call(request, limit_ns);
  expect_blamed(world, ended, silent, "does not answer any more");
}

/// Its connections stay as they are, and the kernel behind them answers. When it goes on it hears what was made of it.
TEST_F(SimulatedHosts, AStoppedHostIsToldToAllOthersAndHearsOfIt) {
  for_each_seed([](World& world) {
    if (world.random() % 2 == 0) all_reduce(world, 100);
    world.idle(second_ns);  // some beats
    const int silent = static_cast<int>(world.random() % world.processes.size());
    world.stopped.insert(silent);
    expect_told_of_silence(world, silent, 5 * second_ns);
    if (HasFatalFailure()) return;
    world.stopped.clear();
    const auto ended = world.call([](Rank) { return Request{.collective = Collective::barrier}; }, second_ns);
    for (const auto& one : ended) {
      ASSERT_TRUE(one);
      EXPECT_FALSE(*one);
    }
  });
}

/// Its last sign of life may have been a second before, and three without one are the least that may count as lost.
TEST_F(SimulatedHosts, AHostThatGoesOnInTimeWasOnlySlow) {
  for_each_seed([](World& world) {
    world.idle(second_ns);
    for (int round = 0; round < 3; ++round) {
      const int silent = static_cast<int>(world.random() % world.processes.size());
      world.stopped.insert(silent);
      world.idle(3 * second_ns / 2);
      world.stopped.clear();
      all_reduce(world, 100);
      if (HasFatalFailure()) return;
      world.idle(second_ns);  // its signs of life are heard before it is silent once more
    }
  });
}

/// All of them, as when a job is suspended: each has counted but one beat when it looks again.
TEST_F(SimulatedHosts, ASuspendedJobGoesOn) {
  for_each_seed([](World& world) {
    all_reduce(world, 100);
    world.system.poll({}, 600 * second_ns);
    all_reduce(world, 100);
  });
}

TEST_F(SimulatedHosts, SilenceMayLastForEverWhereItIsAllowed) {
  for_each_seed(
      [](World& world) {
        world.stopped.insert(0);
        world.idle(60 * second_ns);
        world.stopped.clear();
        all_reduce(world, 100);
      },
      /*silence_ms=*/0);
}

/// The ranks of each host see each other's state; with the neighbours of each rank, all hear of everything, whichever
/// host is lost.
TEST(ControlNeighbours, JoinAllSurvivors) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const int ranks = 2 + static_cast<int>(random() % 40);
    const int host_count = 1 + static_cast<int>(random() % static_cast<std::uint64_t>(ranks));
    std::vector<int> hosts(static_cast<std::size_t>(ranks));
    const bool blocks = random() % 2 == 0;
    for (int r = 0; r < ranks; ++r)
      hosts[static_cast<std::size_t>(r)] =
          blocks ? r * host_count / ranks : static_cast<int>(random() % static_cast<std::uint64_t>(host_count));
    const int lost = static_cast<int>(random() % static_cast<std::uint64_t>(host_count));
    std::vector<int> reached;
    std::vector<bool> seen(static_cast<std::size_t>(ranks));
    std::size_t alive = 0;
    const bool several = std::ranges::adjacent_find(hosts, std::not_equal_to()) != hosts.end();
    std::size_t links = 0;
    for (int r = 0; r < ranks; ++r) {
      EXPECT_EQ(control_neighbours(r, hosts).empty(), !several);
      links += control_neighbours(r, hosts).size();
      for (const int other : control_neighbours(r, hosts)) {
        const auto back = control_neighbours(other, hosts);
        EXPECT_TRUE(std::ranges::find(back, r) != back.end());
      }
      if (hosts[static_cast<std::size_t>(r)] == lost) continue;
      ++alive;
      if (reached.empty()) {
        reached.push_back(r);
        seen[static_cast<std::size_t>(r)] = true;
      }
    }
    for (std::size_t i = 0; i < reached.size(); ++i) {
      auto next = control_neighbours(reached[i], hosts);
      for (int r = 0; r < ranks; ++r)
        if (hosts[static_cast<std::size_t>(r)] == hosts[static_cast<std::size_t>(reached[i])]) next.push_back(r);
      for (const int r : next) {
        if (hosts[static_cast<std::size_t>(r)] == lost || seen[static_cast<std::size_t>(r)]) continue;
        seen[static_cast<std::size_t>(r)] = true;
        reached.push_back(r);
      }
    }
    EXPECT_LE(links, 12u * static_cast<std::size_t>(ranks));
    EXPECT_EQ(reached.size(), alive) << "ranks " << ranks << ", hosts " << host_count << ", lost " << lost;
  }
}

}  // namespace
}  // namespace tutti
