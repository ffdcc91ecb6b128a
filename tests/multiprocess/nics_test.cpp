// Hosts with two network NICs: both carry data where both are good, and one alone where the other is not.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "support/call.h"
#include "support/host_start.h"
#include "support/log_file.h"

namespace tutti::testing {
namespace {

constexpr int hosts = 2;

/// Two NICs and what is wrong with the second.
struct Cards {
  const char* name;
  NetOptions net;
  std::vector<std::string> settings;
  std::vector<double> shares;  ///< of the data, that each NIC carries at least
  std::string logged = {};     ///< by both
  bool second_leads_nowhere = false;
};

void PrintTo(const Cards& nics, std::ostream* out) {
  *out << nics.name;
}

NetOptions two_nics(bool ipv6 = false) {
  return {.hosts = hosts, .ipv4 = !ipv6, .ipv6 = ipv6, .nics = 2};
}

NetOptions cards_of(int mbps, int other_mbps) {
  NetOptions options = two_nics();
  options.faults = {{.announced_mbps = mbps}, {.announced_mbps = other_mbps}};
  return options;
}

class TwoCards : public ::testing::TestWithParam<Cards> {
 protected:
  void SetUp() override {
    auto why = NetNamespaces::unavailable();
    if (!why && !GetParam().net.faults.empty()) why = PacketWire::unavailable();
    if (why) GTEST_SKIP() << *why;
  }
};

const std::vector<double> both = {0.25, 0.25}, first_alone = {0.9, 0}, second_alone = {0, 0.9};

INSTANTIATE_TEST_SUITE_P(
    Kinds, TwoCards,
    ::testing::Values(
        Cards{"ChannelsTakeTurns", two_nics(), {"TUTTI_SOCKET_NSOCKS=1"}, both, "carries a share"},
        Cards{"SocketsTakeTurns", two_nics(), {"TUTTI_SOCKET_NSOCKS=2"}, both, "carries a share"},
        Cards{"Ipv6", two_nics(true), {"TUTTI_SOCKET_NSOCKS=2"}, both, "carries a share"},
        Cards{"ADeadOne", two_nics(), {"TUTTI_SOCKET_NSOCKS=2"}, first_alone, "not reached", true},
        Cards{"ASlowOne", cards_of(10'000, 1'000), {"TUTTI_SOCKET_NSOCKS=2"}, first_alone, "in reserve, slower"},
        Cards{"ASlowFirstOne", cards_of(1'000, 10'000), {"TUTTI_SOCKET_NSOCKS=2"}, second_alone, "in reserve, slower"},
        Cards{"OneThatIsNamed", two_nics(), {"TUTTI_SOCKET_IFNAME==eth1"}, second_alone, "not in TUTTI_SOCKET_IFNAME"},
        Cards{"OneThatIsExcluded", two_nics(), {"TUTTI_SOCKET_IFNAME=^eth1"}, first_alone, "excluded by"}),
    [](const auto& test) { return std::string(test.param.name); });

/// Bytes that have left through a NIC of the calling thread's host.
double sent_by(const std::string& nic) {
  std::ifstream file("/proc/thread-self/net/dev");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name != nic + ":") continue;
    double number = 0;
    constexpr int column = 9;  // after eight of what came in
    for (int i = 0; i < column; ++i) words >> number;
    return number;
  }
  ADD_FAILURE() << "there is no " << nic;
  return 0;
}

TEST_P(TwoCards, CarryWhatTheyShould) {
  const Cards& nics = GetParam();
  const NetNamespaces net(nics.net);
  ASSERT_TRUE(net.made());
  if (nics.second_leads_nowhere) {
    ASSERT_TRUE(net.ip(NetNamespaces::bridge, "link set port1_1 nomaster"));
  }
  launch_ranks({.ranks = hosts, .environment = nics.settings}, [&](Seat& seat) {
    const LogFile log;
    const auto comm = start_on(seat, net, seat.rank());
    ASSERT_NE(comm, nullptr);
    const double before[] = {sent_by("eth0"), sent_by("eth1")};
    const Call call{.count = 1'000'000, .seed = 3};
    ASSERT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}, 3), "");
    // A call ends when its data is in the kernel's hands, which may have yet to send the last of it.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    double sent[2] = {}, all = 0;
    do {
      for (const int nic : {0, 1}) sent[nic] = sent_by(nic == 0 ? "eth0" : "eth1") - before[nic];
      all = sent[0] + sent[1];
      std::this_thread::yield();
    } while (all < 3 * 4e6 && std::chrono::steady_clock::now() < limit);
    EXPECT_GE(all, 3 * 4e6);
    for (const int nic : {0, 1}) EXPECT_GE(sent[nic], nics.shares[static_cast<std::size_t>(nic)] * all) << nic;
    EXPECT_NE(log.text().find(nics.logged), std::string::npos) << nics.logged << "\n" << log.text();
    ASSERT_TRUE(seat.meet());
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
