// Networks that lose, corrupt, repeat, reorder and delay packets, or are slow: results are right, nobody is taken for
// dead, and a host that is cut off is told of as on a good network.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "support/call.h"
#include "support/cut_off.h"

namespace tutti::testing {
namespace {

struct Bad {
  const char* name;
  WireFaults faults;
  bool ipv6 = false;
  std::uint64_t WireCounts::*seen = nullptr;  ///< shows that it was bad indeed
};

void PrintTo(const Bad& bad, std::ostream* out) {
  *out << bad.name;
}

std::optional<std::string> unavailable() {
  const auto why = NetNamespaces::unavailable();
  return why ? why : PacketWire::unavailable();
}

class BadWire : public ::testing::TestWithParam<Bad> {
 protected:
  void SetUp() override {
    if (const auto why = unavailable()) GTEST_SKIP() << *why;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Kinds, BadWire,
    ::testing::Values(Bad{"Loss", {.loss = 0.01}, false, &WireCounts::lost},
                      Bad{"Loss_ipv6", {.loss = 0.01}, true, &WireCounts::lost},
                      Bad{"Corruption", {.corrupt = 0.01}, false, &WireCounts::corrupted},
                      Bad{"Corruption_ipv6", {.corrupt = 0.01}, true, &WireCounts::corrupted},
                      Bad{"Reordering", {.late = 0.02}, false, &WireCounts::late},
                      Bad{"Repetition", {.repeat = 0.05}, false, &WireCounts::repeated},
                      Bad{"Distance", {.delay_us = 10'000}, false, &WireCounts::carried},
                      Bad{"LowRate", {.mbps = 50}, false, &WireCounts::crowded_out},
                      Bad{"All",
                          {.loss = 0.01, .corrupt = 0.01, .repeat = 0.01, .late = 0.01, .delay_us = 1'000, .mbps = 200},
                          true,
                          &WireCounts::lost}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_P(BadWire, GivesRightResultsAndNoFalseDeath) {
  const Bad& bad = GetParam();
  constexpr int hosts = 3;
  const NetNamespaces net({.hosts = hosts, .ipv4 = !bad.ipv6, .ipv6 = bad.ipv6, .faults = {bad.faults}});
  ASSERT_TRUE(net.made());
  launch_ranks({.ranks = hosts + 1}, [&](Seat& seat) {
    const auto comm = start_on(seat, net, seat.rank() % hosts);
    ASSERT_NE(comm, nullptr);
    std::uint64_t seed = 1;
    for (const auto kind : {Kind::all_reduce, Kind::all_to_all, Kind::broadcast})
      for (const std::size_t bytes : {std::size_t{4}, std::size_t{6'000}, std::size_t{300'000}}) {
        const auto count = count_for(kind, tuttiFloat32, seat.ranks(), bytes);
        const Call call{.kind = kind, .count = count, .seed = ++seed};
        seat.doing(call.text());
        ASSERT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}, 3), "") << call.text();
      }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
  EXPECT_GE(net.wire().counts().*bad.seen, 10U);
}

class CutBadWire : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = unavailable()) GTEST_SKIP() << *why;
  }
};

TEST_F(CutBadWire, AHostThatIsCutOffIsToldToAllInTime) {
  constexpr int hosts = 3;
  const NetNamespaces net({.hosts = hosts, .faults = {{.loss = 0.01, .corrupt = 0.005, .late = 0.01}}});
  ASSERT_TRUE(net.made());
  Workers workers({.ranks = hosts, .environment = {"TUTTI_DEBUG=NONE"}},
                  [&](Seat& seat) { call_until_told(seat, net, hosts, told_limit_s, "does not answer"); });
  ASSERT_TRUE(note_under_way(workers));
  ASSERT_TRUE(net.cut(1));
  EXPECT_TRUE(workers.finish());
}

}  // namespace
}  // namespace tutti::testing
