// Signs of life between hosts whose threads wait for a core: nobody is called dead who only waits, on a seeded clock
// and network.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "base/fixed_text.h"
#include "comm/control_links.h"
#include "support/seeds.h"
#include "support/sim_system.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t s = 1'000 * ms;
constexpr std::int64_t silence_ns = 4 * s;
constexpr int ranks = 4;
constexpr int hosts = 2;  // of rank r: r % hosts

struct Rank4 {
  std::unique_ptr<ControlLinks> links;
  std::vector<std::shared_ptr<MirroredHeader>> peers{ranks};
  std::int64_t core_ns = 0;    // when it gets a core
  std::int64_t wishes_ns = 0;  // when it wants to go on
  bool stopped = false;
};

/// Two hosts of two ranks, each with connections to both of the other host.
class World {
 public:
  explicit World(std::uint64_t seed) : system_({.seed = seed}) {
    std::vector<std::vector<ControlLinks::Link>> links(ranks);
    for (int one = 0; one < ranks; ++one)
      for (int other = one + 1; other < ranks; ++other)
        if (one % hosts != other % hosts) connect(links, one, other);
    for (int rank = 0; rank < ranks; ++rank)
      all_[static_cast<std::size_t>(rank)].links = std::make_unique<ControlLinks>(
          system_, std::move(links[static_cast<std::size_t>(rank)]), silence_ns, /*start_ns=*/30 * s);
  }

  /// `wait_ns`: how long a rank waits for its next core at least.
  void run(std::int64_t for_ns, const std::function<std::int64_t(World&, int rank)>& wait_ns) {
    const std::int64_t end_ns = system_.now_ns() + for_ns;
    const auto turn_of = [](const Rank4& one) { return std::max(one.core_ns, one.wishes_ns); };
    for (;;) {
      int next = -1;
      for (int rank = 0; rank < ranks; ++rank)
        if (!at(rank).stopped && (next < 0 || turn_of(at(rank)) < turn_of(at(next)))) next = rank;
      if (next < 0 || turn_of(at(next)) >= end_ns) break;
      if (const std::int64_t now = system_.now_ns(); turn_of(at(next)) > now) system_.poll({}, turn_of(at(next)) - now);
      at(next).links->advance();
      std::vector<PollItem> items;
      // What arrives wakes it.
      at(next).wishes_ns = std::min(at(next).links->poll_set(items), system_.now_ns() + 10 * ms);
      at(next).core_ns = system_.now_ns() + wait_ns(*this, next);
      for (const auto& peer : at(next).peers)
        if (peer && peer->header().state.load() != RankState::open) return;
    }
    if (const std::int64_t now = system_.now_ns(); now < end_ns) system_.poll({}, end_ns - now);
  }

  Rank4& at(int rank) { return all_[static_cast<std::size_t>(rank)]; }
  SimSystem& system() { return system_; }

  /// "0 says that 3 is silent", for each.
  std::vector<std::string> accusations() {
    std::vector<std::string> all;
    for (int rank = 0; rank < ranks; ++rank)
      for (int peer = 0; peer < ranks; ++peer)
        if (const auto& mirror = at(rank).peers[static_cast<std::size_t>(peer)];
            mirror && mirror->header().state.load() != RankState::open)
          all.push_back(std::to_string(rank) + " says of " + std::to_string(peer) + ": " +
                        get_text(mirror->header().message));
    return all;
  }

 private:
  void connect(std::vector<std::vector<ControlLinks::Link>>& links, int one, int other) {
    auto listener = *system_.listen({.host = "10.0.0.1", .port = 0});
    Socket begun = *system_.connect(*system_.address(listener));
    Socket taken;
    while (!taken) {
      system_.poll({}, ms);
      taken = *system_.accept(listener);
    }
    add(links, one, other, std::move(begun));
    add(links, other, one, std::move(taken));
  }
  void add(std::vector<std::vector<ControlLinks::Link>>& links, int rank, int peer, Socket socket) {
    auto& mirror = at(rank).peers[static_cast<std::size_t>(peer)];
    mirror = std::make_shared<MirroredHeader>(AreaShape{.ranks = ranks});
    links[static_cast<std::size_t>(rank)].push_back({.rank = peer,
                                                     .host = peer % hosts,
                                                     .wire = Wire(system_, std::move(socket)),
                                                     .mirror = mirror,
                                                     .who = "rank " + std::to_string(peer)});
  }

  SimSystem system_;
  std::vector<Rank4> all_{ranks};
};

std::int64_t at_once(World&, int) {
  return 0;
}

TEST(StarvedLinks, WhoGetsACoreEverySecondOrSoIsNotDead) {
  for (const std::uint64_t seed : seeds(10'000)) {
    World world(seed);
    world.run(15 * s, [](World& of, int) { return of.system().pick(100 * ms, 1'500 * ms); });
    ASSERT_EQ(world.accusations(), std::vector<std::string>()) << "seed " << seed;
  }
}

/// One core for many: whoever would accuse waits as long as the accused.
TEST(StarvedLinks, WhereAllWaitForLongNobodyIsDead) {
  for (const std::uint64_t seed : seeds(2'000)) {
    World world(seed);
    world.run(5 * s, at_once);
    world.run(120 * s, [](World& of, int) { return of.system().pick(100 * ms, 6'000 * ms); });
    ASSERT_EQ(world.accusations(), std::vector<std::string>()) << "seed " << seed;
  }
}

/// Its host has no core for it, and a rank that would see that it is stopped.
TEST(StarvedLinks, WhoseHostIsHeardIsNotDead) {
  for (const std::uint64_t seed : seeds(500)) {
    World world(seed);
    world.run(5 * s, at_once);
    world.run(120 * s, [](World& of, int rank) { return rank == 1 ? of.system().pick(10 * s, 20 * s) : 0; });
    ASSERT_EQ(world.accusations(), std::vector<std::string>()) << "seed " << seed;
  }
}

TEST(StarvedLinks, AHostThatIsCutOffIsLostInTime) {
  for (const std::uint64_t seed : seeds(500)) {
    World world(seed);
    world.run(5 * s + world.system().pick(0, s), at_once);
    world.at(1).stopped = world.at(3).stopped = true;
    const std::int64_t begin_ns = world.system().now_ns();
    world.run(60 * s, at_once);
    const auto said = world.accusations();
    ASSERT_EQ(said.size(), 1u) << "seed " << seed;
    EXPECT_NE(said.front().find("says of 1: rank 1 lost: it does not answer any more"), std::string::npos)
        << said.front() << ", seed " << seed;
    EXPECT_GE(world.system().now_ns() - begin_ns, silence_ns) << "seed " << seed;
    EXPECT_LE(world.system().now_ns() - begin_ns, silence_ns + s) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tutti
