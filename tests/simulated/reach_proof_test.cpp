// Hosts with NICs that lead nowhere, addresses that all of them have, and strangers at the door: what is proven is
// what every host can reach, and nothing else.
#include "net/reach_proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/bytes.h"
#include "net/connection_server.h"
#include "support/seeds.h"
#include "support/sim_system.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::uint16_t port = 4711;  // on all hosts, so that a wrong host may answer too
/// Listens and never takes anybody in.
const SocketAddress black_hole{.host = "nowhere", .port = 1};

/// One network for all hosts. An address is "a.b": network a, host b. Each host may lack some of the networks.
struct Wiring {
  std::set<std::pair<std::size_t, std::string>> dead;  ///< this host gets no packet through to this address
  std::set<std::string> everywhere;                    ///< every host has it, as docker0's
};

/// The network as one host sees it.
class HostView final : public System {
 public:
  HostView(SimSystem& network, const Wiring& wiring, std::size_t self)
      : network_(network), wiring_(wiring), self_(self) {}

  std::int64_t now_ns() override { return network_.now_ns(); }
  void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t ns) override {
    network_.wait(word, expected, ns);
  }
  void wake(std::atomic<std::uint32_t>& word) override { network_.wake(word); }
  void yield() override { network_.yield(); }
  void poll(std::span<PollItem> items, std::int64_t ns) override { network_.poll(items, ns); }
  Result<Socket> listen(const SocketAddress& at) override {
    return network_.listen({.host = real(at).host, .port = port});
  }
  Result<SocketAddress> address(const Socket& socket) override { return network_.address(socket); }
  Result<SocketAddress> peer_address(const Socket& socket) override {
    if (unanswered_.contains(socket.handle())) return Error{.code = Code::system, .what = "not connected"};
    return network_.peer_address(socket);
  }
  Result<Socket> accept(Socket& listener) override { return network_.accept(listener); }
  Result<Socket> connect(const SocketAddress& to) override {
    if (!wiring_.dead.contains({self_, to.host})) return network_.connect(real(to));
    auto socket = network_.connect(black_hole);
    unanswered_.insert(socket->handle());
    return socket;
  }
  Result<Moved> send(Socket& socket, std::span<const std::byte> bytes) override { return network_.send(socket, bytes); }
  Result<Moved> receive(Socket& socket, std::span<std::byte> bytes) override { return network_.receive(socket, bytes); }
  void close(int handle) override { network_.close(handle); }

 private:
  SocketAddress real(const SocketAddress& at) const {
    if (!wiring_.everywhere.contains(at.host)) return at;
    return {.host = at.host + "@" + std::to_string(self_), .port = at.port};
  }
  SimSystem& network_;
  const Wiring& wiring_;
  std::size_t self_;
  std::set<int> unanswered_;
};

ConnectionKey key_of(int number) {
  Secret secret;
  secret.fill(static_cast<std::byte>(number));
  auto key = ConnectionKey::of(secret);
  EXPECT_TRUE(key);
  return *key;
}

/// Of the hosts, in the order of their numbers: where each is to listen.
using Addresses = std::vector<std::vector<std::string>>;

struct World {
  World(const SimOptions& options, Wiring wiring_in, const Addresses& addresses, std::size_t at_once = 64)
      : network(options), wiring(std::move(wiring_in)) {
    const int ranks = static_cast<int>(addresses.size());
    for (int host = 0; host < ranks; ++host) {
      const auto i = static_cast<std::size_t>(host);
      views.push_back(std::make_unique<HostView>(network, wiring, i));
      auto server = ConnectionServer::open(*views[i], addresses[i]);
      EXPECT_TRUE(server);
      servers.push_back(*server);
      arrivals.push_back(
          std::make_shared<Arrivals>(network, key_of(1), Arrivals::Bounds{.rank = host, .ranks = ranks}));
      servers[i]->expect(arrivals[i]);
      hosts.push_back({.name = fmt::format("host {}", host), .addresses = {}});
      for (std::size_t a = 0; a < addresses[i].size(); ++a)
        hosts[i].addresses.push_back(
            {.rank = host, .at = {.host = addresses[i][a], .port = servers[i]->addresses()[a].port}});
    }
    for (std::size_t host = 0; host < hosts.size(); ++host)
      proofs.push_back(std::make_unique<ReachProof>(*views[host], key_of(1), host, hosts, at_once));
  }

  /// Until every host is through, or an hour has passed.
  bool run() {
    const std::int64_t end = network.now_ns() + 3'600'000 * ms;
    while (network.now_ns() < end) {
      std::size_t done = 0;
      for (const auto& server : servers) server->advance();
      for (const auto& proof : proofs) done += proof->advance() ? 1 : 0;
      if (done == proofs.size()) return true;
      std::vector<PollItem> items;
      std::int64_t wake = end;
      for (const auto& server : servers) wake = std::min(wake, server->poll_set(items));
      for (const auto& proof : proofs) wake = std::min(wake, proof->poll_set(items));
      network.poll(items, std::max<std::int64_t>(1, wake - network.now_ns()));
    }
    return false;
  }

  std::vector<ReachMap> maps() const {
    std::vector<ReachMap> all;
    for (const auto& proof : proofs) {
      auto copy = ReachMap::decode(proof->map().encode(), hosts);
      EXPECT_TRUE(copy);
      all.push_back(*copy);
    }
    return all;
  }

  SimSystem network;
  Socket hole = *network.listen(black_hole);
  Wiring wiring;
  std::vector<ReachHost> hosts;
  std::vector<std::unique_ptr<HostView>> views;
  std::vector<std::shared_ptr<ConnectionServer>> servers;
  std::vector<std::shared_ptr<Arrivals>> arrivals;
  std::vector<std::unique_ptr<ReachProof>> proofs;
};

/// `count` hosts with an address in each of `networks`.
Addresses hosts_in(std::size_t count, const std::vector<std::string>& networks) {
  Addresses hosts(count);
  for (std::size_t host = 0; host < count; ++host)
    for (const auto& network : networks)
      hosts[host].push_back(network.ends_with('!') ? network : network + "." + std::to_string(host));
  return hosts;
}

using Proven = std::vector<std::vector<std::size_t>>;

TEST(ReachProof, EveryGoodAddressIsProven) {
  for (const std::uint64_t seed : seeds(20)) {
    SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(seed));
    World world({.seed = seed}, {}, hosts_in(5, {"a", "b"}));
    ASSERT_TRUE(world.run());
    auto proven = usable_addresses(world.hosts, world.maps(), 0);
    ASSERT_TRUE(proven) << proven.error().text();
    EXPECT_EQ(*proven, Proven(5, {0, 1}));
    for (const auto& proof : world.proofs) EXPECT_TRUE(proof->why().empty());
  }
}

/// A second NIC whose cable is out on one host: nobody uses that host's address, the rest is used together.
TEST(ReachProof, ADeadCardIsLeftOut) {
  Wiring wiring;
  for (std::size_t host = 0; host < 4; ++host) wiring.dead.insert({host, "b.2"});
  World world({.seed = 7}, wiring, hosts_in(4, {"a", "b"}));
  const std::int64_t begin = world.network.now_ns();
  ASSERT_TRUE(world.run());
  EXPECT_LT(world.network.now_ns() - begin, 3'000 * ms) << "one limit, for all of them together";
  auto proven = usable_addresses(world.hosts, world.maps(), 0);
  ASSERT_TRUE(proven) << proven.error().text();
  EXPECT_EQ(*proven, (Proven{{0, 1}, {0, 1}, {0}, {0, 1}}));
  EXPECT_EQ(world.proofs[0]->why(), std::vector<std::string>{"host 2 at b.2 port 4711: no answer for 2000 ms"});
}

/// Hundreds of hosts have a dead NIC each: the start waits for all of them together, not for one lot after the other.
TEST(ReachProof, ManyDeadCardsAreWaitedForTogether) {
  constexpr std::size_t count = 300;
  Wiring wiring;
  for (std::size_t host = 1; host < count; ++host) wiring.dead.insert({0, fmt::format("b.{}", host)});
  World world({.seed = 7}, wiring, hosts_in(count, {"a", "b"}));
  world.proofs.resize(1);
  const std::int64_t begin = world.network.now_ns();
  ASSERT_TRUE(world.run());
  EXPECT_LT(world.network.now_ns() - begin, 5'000 * ms);
  for (std::size_t host = 1; host < count; ++host) {
    EXPECT_TRUE(world.proofs[0]->map().reached(host, 0));
    EXPECT_FALSE(world.proofs[0]->map().reached(host, 1));
  }
}

/// What is less than half as fast as the best way to the same host carries no share, nor does what nobody reached.
TEST(ReachProof, SlowCardsAreNotWide) {
  World world({.seed = 8}, {.dead = {{0, "d.1"}}, .everywhere = {}}, hosts_in(2, {"a", "b", "c", "d"}));
  auto hosts = world.hosts;
  const std::vector<int> rates = {10'000, 4'999, 5'000, 10'000};
  for (std::size_t address = 0; address < rates.size(); ++address) hosts[1].addresses[address].mbps = rates[address];
  world.proofs[0] = std::make_unique<ReachProof>(*world.views[0], key_of(1), 0, hosts);
  ASSERT_TRUE(world.run());
  const ReachMap& map = world.proofs[0]->map();
  EXPECT_TRUE(map.wide(1, 0));
  EXPECT_FALSE(map.wide(1, 1));
  EXPECT_TRUE(map.wide(1, 2));
  EXPECT_FALSE(map.wide(1, 3));
  for (std::size_t address = 0; address < rates.size(); ++address) {
    EXPECT_FALSE(map.wide(0, address)) << "its own";
    EXPECT_TRUE(world.proofs[1]->map().wide(0, address)) << "where no rate is known, all are alike";
  }
}

/// One pair that cannot is enough: an address is for all or for nobody.
TEST(ReachProof, EveryPairHasToReachIt) {
  World world({.seed = 3}, {.dead = {{4, "a.0"}}, .everywhere = {}}, hosts_in(5, {"a", "b"}));
  ASSERT_TRUE(world.run());
  auto proven = usable_addresses(world.hosts, world.maps(), 0);
  ASSERT_TRUE(proven);
  EXPECT_EQ((*proven)[0], std::vector<std::size_t>{1});
  EXPECT_EQ((*proven)[4], (std::vector<std::size_t>{0, 1}));
}

/// docker0 has the same address on every host: who calls it reaches himself, and must notice.
TEST(ReachProof, AnAddressThatEveryHostHasIsNobodys) {
  World world({.seed = 11}, {.dead = {}, .everywhere = {"172.17.0.1!"}}, hosts_in(3, {"172.17.0.1!", "a"}));
  ASSERT_TRUE(world.run());
  auto proven = usable_addresses(world.hosts, world.maps(), 0);
  ASSERT_TRUE(proven) << proven.error().text();
  EXPECT_EQ(*proven, Proven(3, {1}));
}

TEST(ReachProof, AHostThatNobodyReachesIsNamed) {
  Wiring wiring;
  for (std::size_t host = 0; host < 3; ++host) wiring.dead.insert({host, "a.1"});
  World world({.seed = 5}, wiring, hosts_in(3, {"a"}));
  ASSERT_TRUE(world.run());
  auto proven = usable_addresses(world.hosts, world.maps(), 0);
  ASSERT_FALSE(proven);
  EXPECT_NE(proven.error().what.find("host 0 cannot reach host 1 at a.1; its own addresses: a.0"), std::string::npos)
      << proven.error().what;
}

/// Where no address of a host is for all, each of the others uses what it reaches itself.
TEST(ReachProof, AHostWithoutAnAddressForAllIsReachedInSeveralWays) {
  World world({.seed = 4}, {.dead = {{0, "a.1"}, {2, "b.1"}}, .everywhere = {}}, hosts_in(3, {"a", "b"}));
  ASSERT_TRUE(world.run());
  const auto from_0 = usable_addresses(world.hosts, world.maps(), 0);
  ASSERT_TRUE(from_0) << from_0.error().text();
  EXPECT_EQ(*from_0, (Proven{{0, 1}, {1}, {0, 1}}));
  const auto from_2 = usable_addresses(world.hosts, world.maps(), 2);
  ASSERT_TRUE(from_2);
  EXPECT_EQ(*from_2, (Proven{{0, 1}, {0}, {0, 1}}));
}

/// A host that is too busy to answer at once is not given up: the call itself got through.
TEST(ReachProof, ABusyHostIsSlowNotGone) {
  World world({.seed = 9}, {}, hosts_in(2, {"a"}));
  const std::int64_t busy_until_ns = world.network.now_ns() + 8'000 * ms;
  while (world.network.now_ns() < busy_until_ns) {
    ASSERT_FALSE(world.proofs[0]->advance());
    world.network.poll({}, 100 * ms);
  }
  ASSERT_TRUE(world.run());
  EXPECT_TRUE(world.proofs[0]->map().reached(1, 0));
}

TEST(ReachProof, OneHostNeedsNobody) {
  World world({.seed = 1}, {}, hosts_in(1, {"a"}));
  EXPECT_TRUE(world.proofs[0]->advance());
  auto proven = usable_addresses(world.hosts, world.maps(), 0);
  ASSERT_TRUE(proven);
  EXPECT_EQ(*proven, Proven{{0}});
}

/// Many hosts, few calls at a time, and strangers who talk nonsense, or nothing at all, at every door.
TEST(ReachProof, StrangersDoNotDisturb) {
  for (const std::uint64_t seed : seeds(20)) {
    SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(seed));
    World world({.seed = seed}, {}, hosts_in(6, {"a", "b"}), 4);
    std::vector<Socket> strangers;
    for (std::size_t host = 0; host < world.hosts.size(); ++host)
      for (const auto& address : world.hosts[host].addresses) {
        for (std::size_t bytes : {0, 10, 88, 5'000}) {
          strangers.push_back(*world.views[host]->connect(address.at));
          if (bytes == 0) continue;
          Bytes nonsense(bytes, std::byte{0x55});
          (void)world.network.send(strangers.back(), nonsense);
        }
      }
    ASSERT_TRUE(world.run());
    // A prober that a crowd of strangers pushed out is told so and does not count; here there are fewer than that.
    auto proven = usable_addresses(world.hosts, world.maps(), 0);
    ASSERT_TRUE(proven) << proven.error().text();
    EXPECT_EQ(*proven, Proven(6, {0, 1}));
  }
}

/// Who has another secret proves nothing, at either end.
TEST(ReachProof, AnotherSecretProvesNothing) {
  World world({.seed = 2}, {}, hosts_in(2, {"a"}));
  ReachProof other(*world.views[0], key_of(2), 0, world.hosts);
  while (!other.advance()) {
    for (const auto& server : world.servers) server->advance();
    std::vector<PollItem> items;
    const std::int64_t wake = other.poll_set(items);
    for (const auto& server : world.servers) (void)server->poll_set(items);
    world.network.poll(items, std::max<std::int64_t>(1, wake - world.network.now_ns()));
  }
  EXPECT_FALSE(other.map().reached(1, 0));
  EXPECT_EQ(other.why().size(), 1u);
}

/// A network that cuts, refuses and swallows at random costs addresses, never the start.
TEST(ReachProof, EndsWhateverHappens) {
  for (const std::uint64_t seed : seeds(20)) {
    SCOPED_TRACE("replay with TUTTI_TEST_SEED=" + std::to_string(seed));
    World world({.seed = seed, .refuse = 0.1, .silence = 0.1, .to_itself = 0.1, .reset = 0.1, .garble = 0.1}, {},
                hosts_in(4, {"a", "b", "c"}));
    ASSERT_TRUE(world.run());
    for (std::size_t host = 0; host < 4; ++host) {
      std::size_t reached = 0;
      for (std::size_t to = 0; to < 4; ++to)
        for (std::size_t address = 0; address < 3; ++address)
          reached += world.proofs[host]->map().reached(to, address) ? 1 : 0;
      EXPECT_EQ(reached + world.proofs[host]->why().size(), 12u) << "each is reached or has a reason";
    }
  }
}

TEST(ReachMap, SurvivesItsBytes) {
  const std::vector<ReachHost> hosts(3, {.name = "", .addresses = std::vector<ReachAddress>(3)});
  ReachMap map(hosts);
  map.set(0, 2);
  map.set(2, 2);
  map.set_wide(1, 1);
  const auto bytes = map.encode();
  EXPECT_EQ(bytes.size(), 3u);
  auto read = ReachMap::decode(bytes, hosts);
  ASSERT_TRUE(read);
  for (std::size_t host = 0; host < 3; ++host)
    for (std::size_t address = 0; address < 3; ++address) {
      EXPECT_EQ(read->reached(host, address), map.reached(host, address));
      EXPECT_EQ(read->wide(host, address), map.wide(host, address));
    }
  EXPECT_FALSE(ReachMap::decode(std::span(bytes).first(1), hosts));
}

}  // namespace
}  // namespace tutti
