// Processes of several hosts in one thread, on a seeded clock and network, advanced in random order.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "init/join.h"
#include "init/open_root.h"
#include "submit/batch.h"
#include "support/sim_system.h"

namespace tutti {

inline constexpr std::int64_t second_ns = 1'000'000'000;
inline Config config_of(int host, int silence_ms) {
  const std::vector<std::string> environment = {fmt::format("TUTTI_HOSTID=host {}", host), "TUTTI_DEBUG=NONE",
                                                fmt::format("TUTTI_SILENCE_MS={}", silence_ms)};
  auto config = Config::load(environment, [](const std::string&) { return Error{.code = Code::system}; });
  EXPECT_TRUE(config);
  return *std::move(config);
}

using Ended = std::optional<Result<void>>;

/// One process for each host, whose ranks are its threads; which rank is where the seed says.
class HostsWorld {
 public:
  explicit HostsWorld(std::uint64_t seed, int silence_ms = 4000) : system({.seed = seed}), random(seed) {
    const int hosts = 2 + static_cast<int>(random() % 3);
    ranks = hosts + static_cast<int>(random() % 4);
    for (int host = 0; host < hosts; ++host) {
      processes.push_back(std::make_unique<Process>(system, config_of(host, silence_ms), Service::Mode::manual,
                                                    std::make_unique<Tune>()));
    }
    for (Rank rank = 0; rank < ranks; ++rank)
      host_of.push_back(rank < hosts ? rank : static_cast<int>(random() % hosts));
    std::ranges::shuffle(host_of, random);
  }

  /// Advances one operation, or a host's service, chosen at random.
  void turn(const std::vector<Operation*>& operations, std::vector<Ended>& ended) {
    const auto i = static_cast<std::size_t>(random() % (operations.size() + processes.size()));
    if (i >= operations.size()) {
      const int host = static_cast<int>(i - operations.size());
      system.act_as(host);
      if (!dead.contains(host) && !stopped.contains(host)) processes[static_cast<std::size_t>(host)]->service.turn();
      system.poll({}, system.pick(1, step_ns_max));
      return;
    }
    if (operations[i] == nullptr || ended[i] || stopped.contains(host_of[i])) return;
    system.act_as(host_of[i]);
    auto progress = operations[i]->advance();
    if (progress && *progress != Progress::done) {
      (void)operations[i]->poll_peers();
      return;
    }
    ended[i] = progress ? Result<void>() : Result<void>(std::move(progress).error());
  }

  /// Of one operation per rank (nullptr: none), until all have ended or so much virtual time has passed.
  std::vector<Ended> run(const std::vector<Operation*>& operations, std::int64_t limit_ns) {
    std::vector<Ended> ended(operations.size());
    const std::int64_t deadline = system.now_ns() + limit_ns;
    const auto all = [&] {
      for (std::size_t i = 0; i < operations.size(); ++i)
        if (operations[i] != nullptr && !ended[i]) return false;
      return true;
    };
    while (!all() && system.now_ns() < deadline) turn(operations, ended);
    return ended;
  }

  /// Nobody calls anything. After each turn of a host's service all sleep for up to `poll_timeout_ns`.
  void idle(std::int64_t ns, std::int64_t poll_timeout_ns = 20'000'000) {
    std::vector<Ended> none;
    const std::int64_t end = system.now_ns() + ns;
    while (system.now_ns() < end) {
      turn({}, none);
      system.poll({}, poll_timeout_ns);
    }
  }

  /// Its ranks do nothing, and never will or for now.
  bool still(Rank rank) const {
    const int host = host_of[static_cast<std::size_t>(rank)];
    return dead.contains(host) || stopped.contains(host);
  }

  /// Begins to make a communicator: one operation per rank.
  void begin() {
    system.act_as(host_of[0]);
    auto id = open_root(*processes[static_cast<std::size_t>(host_of[0])]);
    EXPECT_TRUE(id);
    for (Rank rank = 0; rank < ranks; ++rank) {
      JoinOptions options{.rank = rank, .ranks = ranks, .id = *id, .name = {}};
      if (map_part_bytes > 0) options.map_part_bytes = map_part_bytes;
      joins.push_back(std::make_unique<Join>(process_of(rank), options));
      starting.push_back(joins.back().get());
    }
  }

  bool start() {
    begin();
    for (const auto& one : run(starting, 120 * second_ns)) {
      EXPECT_TRUE(one && *one) << (one ? one->error().text() : "never ended");
      if (!one || !*one) return false;
    }
    for (auto& join : joins) made.push_back(join->take());
    joins.clear();
    return true;
  }

  Process& process_of(Rank rank) {
    return *processes[static_cast<std::size_t>(host_of[static_cast<std::size_t>(rank)])];
  }

  /// One request of each rank, as `request` says it; nothing for ranks that are still or left out.
  std::vector<Ended> call(const std::function<Request(Rank)>& request, std::int64_t limit_ns, int left_out = -1) {
    std::vector<std::unique_ptr<Batch>> batches;
    std::vector<Operation*> operations;
    for (Rank rank = 0; rank < ranks; ++rank) {
      operations.push_back(nullptr);
      if (rank == left_out || still(rank)) continue;
      batches.push_back(std::make_unique<Batch>(made[static_cast<std::size_t>(rank)]));
      batches.back()->add(request(rank));
      batches.back()->enqueue();
      operations.back() = batches.back().get();
    }
    return run(operations, limit_ns);
  }

  /// All leave, in random order; afterwards no socket is left.
  void stop() {
    std::vector<std::size_t> order(made.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::shuffle(order, random);
    for (const std::size_t i : order) {
      process_of(static_cast<Rank>(i)).service.remove(made[i]->beside_calls().take_watch().get());
      made[i].reset();
    }
    dead.clear();  // what is left of it is cleared away too
    idle(4 * second_ns);
    std::size_t listening = 0;
    for (auto& process : processes) listening += (*process->network.connections())->addresses().size();
    EXPECT_EQ(system.open_sockets(), listening);
  }

  SimSystem system;
  std::mt19937_64 random;
  std::vector<std::unique_ptr<Process>> processes;
  std::vector<int> host_of;
  int ranks = 0;
  std::size_t map_part_bytes = 0;      ///< of the job's map in an exchange; 0: as many as there are
  std::int64_t step_ns_max = 200'000;  ///< of time between what two ranks or services do
  std::set<int> dead;
  std::set<int> stopped;                     ///< hosts that do nothing for now
  std::vector<std::unique_ptr<Join>> joins;  ///< as long as the communicator is being made
  std::vector<Operation*> starting;          ///< the same
  std::vector<std::shared_ptr<Communicator>> made;
};

}  // namespace tutti
