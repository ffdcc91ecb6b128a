// Where ranks of other hosts connect: how many strangers wait there, and what a process without descriptors says of it.
#include "net/connection_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "net/connector.h"
#include "support/seeds.h"
#include "support/sim_system.h"

namespace tutti {
namespace {

constexpr std::int64_t s = 1'000'000'000;

class CalledAt : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Addresses, CalledAt, ::testing::Values(0, 1));

TEST_P(CalledAt, SaysWhyItLetsNobodyIn) {
  SimSystem network{SimOptions{.accepted_max = 0}};
  const auto server = *ConnectionServer::open(network, {"10.0.0.1", "10.0.1.1"});
  const Socket caller = *network.connect(server->addresses().at(GetParam()));
  const std::int64_t begin_ns = network.now_ns();
  while (!server->stuck() && network.now_ns() < begin_ns + 10 * s) {
    ASSERT_TRUE(server->advance());
    network.poll({}, s / 100);
  }
  ASSERT_TRUE(server->stuck());
  EXPECT_EQ(server->stuck()->sys_errno, EMFILE);
  EXPECT_GE(network.now_ns() - begin_ns, 1 * s) << "descriptors may come back";
  EXPECT_LE(network.now_ns() - begin_ns, 2 * s);
  network.options().accepted_max = 10;
  network.poll({}, s);
  ASSERT_TRUE(server->advance());
  EXPECT_FALSE(server->stuck());
}

TEST(ConnectionServer, IsNotStuckWhereNobodyCalls) {
  SimSystem network{SimOptions{.accepted_max = 0}};
  const auto server = *ConnectionServer::open(network, {"10.0.0.1"});
  const std::int64_t begin_ns = network.now_ns();
  while (network.now_ns() < begin_ns + 3 * s) {
    ASSERT_TRUE(server->advance());
    network.poll({}, s / 100);
  }
  EXPECT_FALSE(server->stuck());
}

/// A process at whose door callers stand.
struct Door {
  explicit Door(std::uint64_t seed)
      : network({.seed = seed}), server(*ConnectionServer::open(network, {"10.0.0.1"})), at(server->addresses()) {
    server->expect(arrivals);
  }
  /// As the service thread would: it comes back when something happens, or when it was told to.
  void turn(std::int64_t until_ns, const Connector* caller = nullptr) {
    ASSERT_TRUE(server->advance());
    most = std::max(most, network.accepted_sockets());
    std::vector<PollItem> items;
    std::int64_t next_ns = std::min(until_ns, server->poll_set(items));
    if (caller != nullptr) next_ns = std::min(next_ns, caller->poll_set(items));
    network.poll(items, std::max<std::int64_t>(0, next_ns - network.now_ns()));
  }
  void call(std::int64_t count) {
    for (; count > 0; --count) strangers.push_back(*network.connect(at.front()));
  }
  void say_a_byte() {
    for (Socket& stranger : strangers) (void)network.send(stranger, Bytes(1));
  }
  std::size_t dropped() {
    std::size_t count = 0;
    std::byte byte;
    for (Socket& stranger : strangers) {
      const auto moved = network.receive(stranger, std::span(&byte, 1));
      if (!moved || moved->closed) ++count;
    }
    return count;
  }

  SimSystem network;
  std::shared_ptr<ConnectionServer> server;
  std::vector<SocketAddress> at;
  ConnectionKey key = *ConnectionKey::of(Secret{});
  std::shared_ptr<Arrivals> arrivals =
      std::make_shared<Arrivals>(network, key, Arrivals::Bounds{.rank = 0, .ranks = 2});
  std::vector<Socket> strangers;
  std::size_t most = 0;  ///< who stood there at once
};

TEST(ConnectionServer, HoldsFewStrangersAndNotForLong) {
  for (const std::uint64_t seed : seeds(20)) {
    SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(seed));
    Door door(seed);
    const std::int64_t all_call_ns = door.network.now_ns() + s / 10;
    for (std::int64_t left = 200; left > 0;) {
      const std::int64_t count = door.network.pick(1, std::min<std::int64_t>(left, 20));
      door.call(count);
      left -= count;
      if (door.network.chance(0.5)) door.turn(all_call_ns);
    }
    while (door.network.now_ns() < all_call_ns) door.turn(all_call_ns);
    EXPECT_EQ(door.network.accepted_sockets(), 64u);

    // The door is full, and one comes who has the secret.
    const Greeting greeting{.communicator = door.key.communicator, .from = 1, .to = 0, .purpose = Purpose::data};
    Connector friendly(door.network, door.at, greeting, door.key, 30 * s);
    Result<std::optional<Socket>> inside = std::optional<Socket>();
    while (inside && !*inside && door.network.now_ns() < all_call_ns + s) {
      door.turn(all_call_ns + s, &friendly);
      inside = friendly.advance();
    }
    ASSERT_TRUE(inside && *inside) << "it has to wait for the strangers to go";
    EXPECT_TRUE(door.arrivals->take(Purpose::data, 1, 0, 0));

    // A byte now and then gains them nothing.
    for (int tenth = 1; tenth <= 20; ++tenth) {
      door.say_a_byte();
      while (door.network.now_ns() < all_call_ns + tenth * s / 10) door.turn(all_call_ns + tenth * s / 10);
    }
    door.turn(all_call_ns + 2 * s);
    EXPECT_EQ(door.network.accepted_sockets(), 0u);
    EXPECT_EQ(door.dropped(), door.strangers.size());
    EXPECT_EQ(door.most, 64u);
  }
}

}  // namespace
}  // namespace tutti
