// Hosts with interfaces that lead nowhere: they are found out before anything depends on them, and the log says so.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/host.h"
#include "support/call.h"
#include "support/host_start.h"
#include "support/log_file.h"

namespace tutti::testing {
namespace {

constexpr int hosts = 3;

/// What makes an interface named "decoy" on each host, and the settings that put it before the good one.
struct Decoy {
  const char* name;
  std::vector<std::string> commands;  ///< of ip; {} is the host's number
  std::string address;                ///< {} is a host's number
  bool link_local = false;            ///< and the good ones of IPv6: never tried beside one that is not
};

void PrintTo(const Decoy& decoy, std::ostream* out) {
  *out << decoy.name;
}

const std::vector<std::string> cable_into_nothing = {"link add decoy type veth peer name decoy_end",
                                                     "link set decoy_end up", "link set decoy up"};

/// As docker makes it: a bridge with a container, and the same address on every host.
Decoy docker() {
  return {.name = "Docker",
          .commands = {"link add decoy type bridge", "link add container type veth peer name container_end",
                       "link set container master decoy", "link set container_end up", "link set container up",
                       "link set decoy up", "addr add 172.17.0.1/16 dev decoy"},
          .address = "172.17.0.1"};
}

/// A second NIC with a network of its own, whose switch is dead.
Decoy dead_nic() {
  Decoy decoy{.name = "DeadCard", .commands = cable_into_nothing, .address = "10.88.0.{}"};
  decoy.commands.emplace_back("addr add 10.88.0.{}/24 dev decoy");
  return decoy;
}

/// A container's cable without any address but the one that each interface has.
Decoy link_local() {
  Decoy decoy{.name = "LinkLocal", .commands = cable_into_nothing, .address = "fe80::{}%decoy", .link_local = true};
  decoy.commands.emplace_back("addr add fe80::{}/64 dev decoy nodad");
  return decoy;
}

class Decoys : public ::testing::TestWithParam<Decoy> {
 protected:
  void SetUp() override {
    if (const auto why = NetNamespaces::unavailable()) GTEST_SKIP() << *why;
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, Decoys, ::testing::Values(docker(), dead_nic(), link_local()),
                         [](const auto& test) { return std::string(test.param.name); });

void make(const Decoy& decoy, const NetNamespaces& net) {
  for (int host = 0; host < hosts; ++host)
    for (const auto& command : decoy.commands)
      ASSERT_TRUE(net.ip(host, fmt::format(fmt::runtime(command), host + 1))) << command;
}

void expect_good_call(Seat& seat, tuttiComm_t comm) {
  const Call call{.kind = Kind::all_to_all, .count = 5'000, .seed = 3};
  EXPECT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}, 2), "");
}

/// Where nothing is said, the best kind of interface alone is used, which these are not, or are as well.
TEST_P(Decoys, DoNotHurt) {
  const Decoy& decoy = GetParam();
  const NetNamespaces net({.hosts = hosts, .ipv4 = !decoy.link_local, .ipv6 = decoy.link_local});
  ASSERT_TRUE(net.made());
  make(decoy, net);
  launch_ranks({.ranks = hosts}, [&](Seat& seat) {
    const auto comm = start_on(seat, net, seat.rank());
    ASSERT_NE(comm, nullptr);
    expect_good_call(seat, comm);
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// Even where they are wished for, and first.
TEST_P(Decoys, AreFoundOutByThoseWhoTryThem) {
  const Decoy& decoy = GetParam();
  const NetNamespaces net({.hosts = hosts, .ipv4 = !decoy.link_local, .ipv6 = decoy.link_local});
  ASSERT_TRUE(net.made());
  make(decoy, net);
  // Rank 1 is the second of the first host, so that its addresses count although it calls nobody.
  launch_ranks({.ranks = hosts + 1, .environment = {"TUTTI_SOCKET_IFNAME=decoy,eth0"}}, [&](Seat& seat) {
    const LogFile log;
    const int host = std::max(0, seat.rank() - 1);
    const auto comm = start_on(seat, net, host);
    ASSERT_NE(comm, nullptr);
    expect_good_call(seat, comm);
    ASSERT_TRUE(seat.meet());
    const std::string text = log.text();
    for (int other = 0; other < hosts; ++other) {
      if (decoy.link_local ? other != host : other == host || seat.rank() == 1) continue;
      const auto address = fmt::format(fmt::runtime(decoy.address), other + 1);
      const auto line = decoy.link_local ? fmt::format("not used: decoy {}: link-local", address)
                                         : fmt::format("not reached: {} (rank {}) at {} port", host_name(),
                                                       other == 0 ? 0 : other + 1, address);
      EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
    }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

class Unreachable : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = NetNamespaces::unavailable()) GTEST_SKIP() << *why;
  }
};

/// Both reach the root, and one another not: all hear who cannot access whom, and where it looked.
TEST_F(Unreachable, APairWithoutAnAddressIsNamedToAll) {
  const NetNamespaces net({.hosts = hosts});
  ASSERT_TRUE(net.made());
  ASSERT_TRUE(net.blackhole(1, 2) && net.blackhole(2, 1));
  launch_ranks({.ranks = hosts, .environment = {"TUTTI_DEBUG=NONE"}}, [&](Seat& seat) {
    tuttiComm_t comm = nullptr;
    const auto result = start_on(seat, net, seat.rank(), &comm);
    const auto expected = fmt::format("{0} (rank 2) cannot reach {0} (rank 1) at {1}; its own addresses: {2}",
                                      host_name(), net.address(1), net.address(2));
    EXPECT_TRUE(fails(result, tuttiSystemError, expected));
  });
}

}  // namespace
}  // namespace tutti::testing
