// Which addresses are used: by TUTTI_SOCKET_IFNAME and TUTTI_SOCKET_FAMILY, or else those that lead to other hosts.
#include "base/interface_choice.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>

#include "base/system.h"

namespace tutti {
namespace {

InterfaceAddress v4(std::string interface, std::string address, InterfaceKind kind, int mbps = 0) {
  return {.interface = std::move(interface), .address = std::move(address), .kind = kind, .mbps = mbps};
}

InterfaceAddress v6(std::string interface, std::string address, InterfaceKind kind, int mbps = 0) {
  auto one = v4(std::move(interface), std::move(address), kind, mbps);
  one.ipv6 = true;
  one.link_local = one.address.starts_with("fe80");
  return one;
}

/// A machine as they are: two NICs, one of them slow, and what container engines leave behind.
std::vector<InterfaceAddress> usual() {
  using enum InterfaceKind;
  auto down = v4("eth2", "10.9.0.1", device, 100'000);
  down.up = false;
  return {v4("lo", "127.0.0.1", loopback),
          v4("docker0", "172.17.0.1", bridge),
          v4("eth0", "10.0.0.1", device, 1'000),
          v4("eth1", "10.1.0.1", device, 25'000),
          v4("eth1", "10.1.0.99", device, 25'000),
          v4("wg0", "10.5.0.1", tunnel),
          down,
          v6("lo", "::1", loopback),
          v6("eth1", "fd00::1", device, 25'000),
          v6("eth1", "fe80::1%eth1", device, 25'000),
          v6("veth12", "fe80::2%veth12", pair),
          v6("virbr0", "fd01::1", bridge)};
}

using Addresses = std::vector<std::string>;

Addresses used(const std::vector<InterfaceAddress>& all, const InterfaceFilter& filter = {}) {
  auto choice = choose_interfaces(all, filter);
  if (!choice) return {choice.error().text()};
  EXPECT_EQ(choice->used.size() + choice->left_out.size(), all.size()) << "each is used or has a reason";
  for (const auto& left_out : choice->left_out) EXPECT_NE(left_out.why, "") << left_out.address.address;
  Addresses addresses;
  for (const auto& one : choice->used) addresses.push_back(one.address);
  return addresses;
}

std::string why_not(const InterfaceFilter& filter, const std::string& address) {
  auto choice = choose_interfaces(usual(), filter);
  if (!choice) return choice.error().text();
  for (const auto& left_out : choice->left_out)
    if (left_out.address.address == address) return left_out.why;
  return "used";
}

TEST(InterfaceChoice, PrefersFastDevices) {
  EXPECT_EQ(used(usual()), (Addresses{"10.1.0.1", "fd00::1", "10.0.0.1"}));
}

TEST(InterfaceChoice, TakesWhatIsLeftInOrder) {
  auto all = usual();
  const auto without = [&](const std::string& interface) {
    std::erase_if(all, [&](const auto& one) { return one.interface == interface; });
    return used(all);
  };
  without("eth2");
  without("eth0");
  std::erase_if(all, [](const auto& one) { return one.address == "10.1.0.1" || one.address == "fd00::1"; });
  EXPECT_EQ(without(""), Addresses{"10.1.0.99"});
  std::erase_if(all, [](const auto& one) { return one.address == "10.1.0.99"; });
  EXPECT_EQ(without(""), Addresses{"10.5.0.1"}) << "a tunnel";
  EXPECT_EQ(without("wg0"), (Addresses{"172.17.0.1", "fd01::1"})) << "bridges";
  without("docker0");
  EXPECT_EQ(without("virbr0"), (Addresses{"fe80::1%eth1", "fe80::2%veth12"})) << "link-local";
  without("eth1");
  EXPECT_EQ(without("veth12"), (Addresses{"127.0.0.1", "::1"})) << "only this host";
  EXPECT_NE(without("lo").front().find("no network interface to use: there is none"), std::string::npos);
}

/// The well-known failure: a job that hangs because somebody took the first address that is up.
TEST(InterfaceChoice, NeverTakesALinkLocalVethBesideADevice) {
  const std::vector<InterfaceAddress> all = {v6("veth0", "fe80::1%veth0", InterfaceKind::pair, 10'000),
                                             v4("eth0", "10.0.0.1", InterfaceKind::device)};
  EXPECT_EQ(used(all), Addresses{"10.0.0.1"});
}

TEST(InterfaceChoice, AVethIsAllAContainerHas) {
  const std::vector<InterfaceAddress> all = {v4("lo", "127.0.0.1", InterfaceKind::loopback),
                                             v4("eth0", "10.244.1.7", InterfaceKind::pair),
                                             v6("eth0", "fe80::1%eth0", InterfaceKind::pair)};
  EXPECT_EQ(used(all), Addresses{"10.244.1.7"});
}

TEST(InterfaceChoice, UnderstandsTheNames) {
  EXPECT_EQ(used(usual(), {.names = "eth0"}), Addresses{"10.0.0.1"});
  EXPECT_EQ(used(usual(), {.names = "eth"}), (Addresses{"10.1.0.1", "fd00::1", "10.0.0.1"}));
  EXPECT_EQ(used(usual(), {.names = "eth0,eth1"}), (Addresses{"10.0.0.1", "10.1.0.1", "fd00::1"})) << "in that order";
  EXPECT_EQ(used(usual(), {.names = " eth0 ,, wg"}), (Addresses{"10.0.0.1", "10.5.0.1"}));
  EXPECT_EQ(used(usual(), {.names = "=eth1"}), (Addresses{"10.1.0.1", "fd00::1"}));
  EXPECT_EQ(used(usual(), {.names = "^eth1"}), Addresses{"10.0.0.1"});
  EXPECT_EQ(used(usual(), {.names = "^eth"}), Addresses{"10.5.0.1"});
  EXPECT_EQ(used(usual(), {.names = "^=eth,wg0"}), (Addresses{"10.1.0.1", "fd00::1", "10.0.0.1"})) << "no such names";
  EXPECT_EQ(used(usual(), {.names = "^=eth0"}), (Addresses{"10.1.0.1", "fd00::1"}));
  EXPECT_EQ(used(usual(), {.names = "^"}), used(usual()));
}

TEST(InterfaceChoice, TheUsersWordCounts) {
  EXPECT_EQ(used(usual(), {.names = "docker0"}), Addresses{"172.17.0.1"});
  EXPECT_EQ(used(usual(), {.names = "lo"}), (Addresses{"127.0.0.1", "::1"}));
  EXPECT_EQ(used(usual(), {.names = "veth"}), Addresses{"fe80::2%veth12"});
}

TEST(InterfaceChoice, UnderstandsTheFamily) {
  EXPECT_EQ(used(usual(), {.family = "AF_INET"}), (Addresses{"10.1.0.1", "10.0.0.1"}));
  EXPECT_EQ(used(usual(), {.family = "AF_INET6"}), Addresses{"fd00::1"});
  EXPECT_EQ(used(usual(), {.names = "lo", .family = "AF_INET6"}), Addresses{"::1"});
}

TEST(InterfaceChoice, EveryReasonIsTold) {
  EXPECT_EQ(why_not({}, "172.17.0.1"), "a bridge without a device, used where there is nothing better");
  EXPECT_EQ(why_not({}, "127.0.0.1"), "loopback, reaches only this host");
  EXPECT_EQ(why_not({}, "10.9.0.1"), "down or without a carrier");
  EXPECT_EQ(why_not({}, "10.1.0.99"), "another address of this interface is used");
  EXPECT_EQ(why_not({.names = "eth1"}, "10.0.0.1"), "not in TUTTI_SOCKET_IFNAME=eth1");
  EXPECT_EQ(why_not({.names = "^=eth0"}, "10.0.0.1"), "excluded by TUTTI_SOCKET_IFNAME=^=eth0");
  EXPECT_EQ(why_not({.family = "AF_INET"}, "fd00::1"), "TUTTI_SOCKET_FAMILY=AF_INET");
  auto none = choose_interfaces(usual(), {.names = "ib"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::invalid_usage);
  EXPECT_NE(none.error().what.find("eth0 10.0.0.1: not in TUTTI_SOCKET_IFNAME=ib"), std::string::npos);
  EXPECT_NE(none.error().what.find("eth2 10.9.0.1"), std::string::npos);
}

/// Of a host where all that may lead to others has no carrier yet.
TEST(InterfaceChoice, AwaitsWhatMayLeadToOthersSoon) {
  using enum InterfaceKind;
  auto cable = v4("eth0", "10.244.1.7", pair);
  cable.up = false;
  auto own = v6("eth0", "fe80::1%eth0", pair);
  own.up = false;
  auto docker = v4("docker0", "172.17.0.1", bridge);
  const auto loop = v4("lo", "127.0.0.1", loopback);
  EXPECT_EQ(awaited_interfaces(std::vector{loop, cable, own, docker}, {}), Addresses{"eth0 10.244.1.7"});
  EXPECT_EQ(awaited_interfaces(std::vector{loop, cable}, {.names = "eth"}), Addresses{"eth0 10.244.1.7"});
  EXPECT_EQ(awaited_interfaces(std::vector{loop, cable}, {.names = "lo"}), Addresses{}) << "is there";
  EXPECT_EQ(awaited_interfaces(std::vector{loop, cable}, {.names = "^eth0"}), Addresses{}) << "is not wanted";
  EXPECT_EQ(awaited_interfaces(std::vector{loop, cable}, {.family = "AF_INET6"}), Addresses{});
  docker.up = false;
  EXPECT_EQ(awaited_interfaces(std::vector{loop, docker}, {}), Addresses{}) << "has no container, and need not";
  EXPECT_EQ(awaited_interfaces(std::vector{loop, docker}, {.names = "docker0"}), Addresses{"docker0 172.17.0.1"});
  EXPECT_EQ(awaited_interfaces(usual(), {}), Addresses{}) << "eth2 is down, others are not";
  EXPECT_EQ(awaited_interfaces(usual(), {.names = "eth2"}), Addresses{"eth2 10.9.0.1"});
  EXPECT_EQ(awaited_interfaces(usual(), {.names = "eth2,eth0"}), Addresses{})
      << "one of those that were named is there";
}

TEST(Interfaces, KnowsKindsByWhatTheyStandOn) {
  using enum InterfaceKind;
  const std::vector<LinkFacts> links = {{.index = 1, .name = "lo", .loopback = true},
                                        {.index = 2, .name = "eth0", .master = 5},
                                        {.index = 3, .name = "veth1", .kind = "veth", .parent = 99, .master = 6},
                                        {.index = 4, .name = "eth0.7", .kind = "vlan", .parent = 2},
                                        {.index = 5, .name = "br0", .kind = "bridge"},
                                        {.index = 6, .name = "docker0", .kind = "bridge"},
                                        {.index = 7, .name = "veth1.8", .kind = "vlan", .parent = 3},
                                        {.index = 8, .name = "bond0", .kind = "bond"},
                                        {.index = 9, .name = "wg0", .kind = "wireguard"},
                                        {.index = 10, .name = "loop", .kind = "vlan", .parent = 10},
                                        {.index = 11, .name = "net1", .kind = "macvlan", .parent = 77},
                                        {.index = 12, .name = "dummy0", .kind = "dummy"}};
  const InterfaceKind expected[] = {loopback, device, pair,   device, device, bridge,
                                    pair,     device, tunnel, device, device, dummy};
  for (std::size_t i = 0; i < links.size(); ++i) EXPECT_EQ(kind_of(links[i], links), expected[i]) << links[i].name;
}

TEST(Interfaces, KnowsKindsByName) {
  EXPECT_EQ(kind_of_name("lo"), InterfaceKind::loopback);
  EXPECT_EQ(kind_of_name("docker0"), InterfaceKind::bridge);
  EXPECT_EQ(kind_of_name("vethab12"), InterfaceKind::pair);
  EXPECT_EQ(kind_of_name("tun0"), InterfaceKind::tunnel);
  EXPECT_EQ(kind_of_name("enp3s0"), InterfaceKind::device);
  EXPECT_EQ(kind_of_name("br0"), InterfaceKind::device) << "hosts of virtual machines have their address on such";
}

/// What this machine has is not known, but what it has is listed in a way that can be used.
TEST(Interfaces, ListsThisMachine) {
  auto list = list_addresses();
  ASSERT_TRUE(list) << list.error().text();
  for (const auto& one : *list) {
    EXPECT_NE(one.interface, "");
    EXPECT_EQ(one.ipv6, one.address.find(':') != std::string::npos) << one.address;
    EXPECT_EQ(one.kind == InterfaceKind::loopback, one.interface == "lo") << one.interface;
    EXPECT_GE(one.mbps, 0);
    EXPECT_TRUE(one.up || one.address != "127.0.0.1");
  }
}

/// Runs `body` in a network namespace of its own, made by `commands`; nothing where that is not allowed.
std::optional<std::string> in_namespace(const std::string& commands, const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    const bool made = ::unshare(CLONE_NEWNET) == 0 && std::system(commands.c_str()) == 0;
    const std::string said = made ? body() : "";
    (void)!::write(ends[1], said.data(), said.size());
    ::_exit(made ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return said;
}

/// A host with a container engine's bridge, a veth that has nothing but an fe80 address, and its own way out.
TEST(Interfaces, DecoysOfARealKernelAreLeftOut) {
  const std::string commands =
      "exec 2>/dev/null; set -e; ip link set lo up;"
      "ip link add docker0 type bridge; ip addr add 172.17.0.1/16 dev docker0; ip link set docker0 up;"
      "ip link add veth9 type veth peer name veth9p; ip link set veth9 up; ip link set veth9p master docker0 up;"
      "ip link add eth0 type veth peer name out; ip addr add 10.77.0.1/24 dev eth0; ip link set eth0 up;"
      "ip link set out up; ip link add dead0 type veth peer name dead1; ip addr add 10.78.0.1/24 dev dead0";
  const auto look = [] {
    auto all = list_addresses();
    if (!all) return all.error().text();
    auto choice = choose_interfaces(*all, {});
    if (!choice) return choice.error().text();
    std::string text;
    for (const auto& line : choice->used_text()) text += "used " + line + "\n";
    for (const auto& line : choice->left_out_text()) text += "not " + line + "\n";
    return text;
  };
  const auto said = in_namespace(commands, [look] {
    // The kernel takes a moment to see that a cable is in.
    const std::int64_t end = real_system().now_ns() + 20'000'000'000;
    std::string text = look();
    while (real_system().now_ns() < end && (text.find("used eth0") == std::string::npos ||
                                            text.find("docker0 172.17.0.1: a bridge") == std::string::npos)) {
      real_system().poll({}, 10'000'000);
      text = look();
    }
    return text;
  });
  if (!said) GTEST_SKIP() << "no network namespace can be made here";
  const auto has = [&](const std::string& line) { return said->find(line) != std::string::npos; };
  EXPECT_TRUE(has("used eth0 10.77.0.1 (veth pair")) << *said;
  EXPECT_EQ(said->find("\nused"), std::string::npos) << *said;
  EXPECT_TRUE(has("not docker0 172.17.0.1: a bridge without a device")) << *said;
  EXPECT_TRUE(has("not dead0 10.78.0.1: down or without a carrier")) << *said;
  EXPECT_TRUE(has("not lo 127.0.0.1: loopback")) << *said;
  // The kernel may not have given it its address yet, but nobody may use it.
  EXPECT_FALSE(has("used veth9")) << *said;
}

/// A cable whose other end is not switched on yet, and then is.
TEST(Interfaces, ACarrierOfARealKernelIsAwaited) {
  const std::string commands =
      "exec 2>/dev/null; set -e; ip link set lo up; ip link add eth0 type veth peer name out;"
      "ip addr add 10.77.0.1/24 dev eth0; ip link set eth0 up";
  const auto look = [] {
    auto all = list_addresses();
    if (!all) return all.error().text();
    const auto awaited = awaited_interfaces(*all, {});
    return awaited.empty() ? std::string("none") : awaited.front();
  };
  const auto said = in_namespace(commands, [look] {
    std::string text = look() + ", ";
    if (std::system("ip link set out up") != 0) return text;
    const std::int64_t end = real_system().now_ns() + 20'000'000'000;
    while (real_system().now_ns() < end && look() != "none") real_system().poll({}, 10'000'000);
    return text + look();
  });
  if (!said) GTEST_SKIP() << "no network namespace can be made here";
  EXPECT_EQ(*said, "eth0 10.77.0.1, none");
}

}  // namespace
}  // namespace tutti
