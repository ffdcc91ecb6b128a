// Ranks on several hosts: network namespaces of this machine. Calls give what they should; cables are cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include <fmt/format.h>

#include "support/call.h"
#include "support/launch_ranks.h"
#include "support/net_namespaces.h"

namespace tutti::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double told_limit_s = 5;  // of silence, as reliability promises; a proven death takes two
constexpr double death_limit_s = 2;
constexpr double leave_limit_s = 1;

struct Shape {
  int hosts;
  int each;  ///< ranks of a host
  bool ipv6;
};

/// Rank r is on host r mod hosts: neighbours are on different ones.
tuttiComm_t start(Seat& seat, const NetNamespaces& net, int hosts) {
  if (!net.enter(seat.rank() % hosts)) {
    ADD_FAILURE() << "cannot enter the namespace";
    return nullptr;
  }
  const std::string root = net.address(0);
  const std::string host = root.find(':') == std::string::npos ? root : "[" + root + "]";
  ::setenv("TUTTI_COMM_ID", (host + ":4711").c_str(), 1);
  ::setenv("TUTTI_COMM_SECRET", "not known to anybody else", 1);
  ::setenv("TUTTI_RANK", std::to_string(seat.rank()).c_str(), 1);
  ::setenv("TUTTI_NRANKS", std::to_string(seat.ranks()).c_str(), 1);
  tuttiComm_t comm = nullptr;
  EXPECT_TRUE(ok(tuttiCommInitFromEnv(&comm, nullptr)));
  return comm;
}

class Hosts : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    if (const auto why = NetNamespaces::unavailable()) GTEST_SKIP() << *why;
  }
};

INSTANTIATE_TEST_SUITE_P(Shapes, Hosts, ::testing::Values(Shape{2, 1, false}, Shape{3, 2, false}, Shape{2, 2, true}),
                         [](const auto& test) {
                           return fmt::format("{}_hosts_of_{}{}", test.param.hosts, test.param.each,
                                              test.param.ipv6 ? "_ipv6" : "");
                         });

TEST_P(Hosts, EveryCollectiveGivesWhatItShould) {
  const Shape shape = GetParam();
  const NetNamespaces net({.hosts = shape.hosts, .ipv4 = !shape.ipv6, .ipv6 = shape.ipv6});
  ASSERT_TRUE(net.made());
  launch_ranks({.ranks = shape.hosts * shape.each}, [&](Seat& seat) {
    const auto comm = start(seat, net, shape.hosts);
    ASSERT_NE(comm, nullptr);
    std::uint64_t seed = 1;
    for (int kind = 0; kind < kind_count; ++kind)
      for (const std::size_t bytes : {std::size_t{4}, std::size_t{6'000}, std::size_t{700'000}}) {
        const auto count = count_for(static_cast<Kind>(kind), tuttiFloat32, seat.ranks(), bytes);
        const Call call{.kind = static_cast<Kind>(kind), .count = count, .root = seat.ranks() - 1, .seed = ++seed};
        seat.doing(call.text());
        ASSERT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}, 2), "") << call.text();
      }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// Words of the board.
enum Word : std::size_t { under_way, done_to };

/// All ranks call until a call fails; when told, in what words, and how long leaving takes.
void call_until_told(Seat& seat, const NetNamespaces& net, int hosts, double limit_s, const std::string& named) {
  const auto comm = start(seat, net, hosts);
  ASSERT_NE(comm, nullptr);
  Buffer buffer(Memory::heap, 1 << 20);
  tuttiResult_t result = tuttiSuccess;
  for (std::uint64_t call = 1; result == tuttiSuccess; ++call) {
    result = tuttiAllReduce(buffer.data(), buffer.data(), call % 2 == 0 ? 1 << 18 : 2, tuttiFloat32, tuttiSum, comm,
                            nullptr);
    if (seat.rank() == 0) seat.board().raise(under_way, call);
  }
  const auto told = Clock::now();
  const std::string words = tuttiGetLastError(comm);
  ASSERT_TRUE(seat.board().wait_for(done_to, 1));
  const auto at = Clock::time_point(Clock::duration(static_cast<Clock::rep>(seat.board().word(done_to).load())));
  EXPECT_LT(std::chrono::duration<double>(told - at).count(), limit_s * patience()) << words;
  EXPECT_EQ(result, tuttiRemoteError) << words;
  EXPECT_NE(words.find(named), std::string::npos) << words;
  EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - told).count(), leave_limit_s * patience());
}

class Cable : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = NetNamespaces::unavailable()) GTEST_SKIP() << *why;
  }
  static void note_now(Crew& crew) {
    crew.board().raise(done_to, static_cast<std::uint64_t>(Clock::now().time_since_epoch().count()));
  }
  static constexpr int hosts = 3;
};

/// Its own side too.
TEST_F(Cable, AHostThatIsCutOffIsToldToAll) {
  const NetNamespaces net({.hosts = hosts});
  ASSERT_TRUE(net.made());
  Crew crew({.ranks = hosts, .environment = {"TUTTI_DEBUG=NONE"}},
            [&](Seat& seat) { call_until_told(seat, net, hosts, told_limit_s, "does not answer"); });
  ASSERT_TRUE(crew.board().wait_for(under_way, 20));
  note_now(crew);
  ASSERT_TRUE(net.cut(1));
  EXPECT_TRUE(crew.finish());
}

/// The third host hears of it from both.
TEST_F(Cable, AWayThatIsABlackHoleIsToldToAll) {
  const NetNamespaces net({.hosts = hosts});
  ASSERT_TRUE(net.made());
  Crew crew({.ranks = hosts, .environment = {"TUTTI_DEBUG=NONE"}},
            [&](Seat& seat) { call_until_told(seat, net, hosts, told_limit_s, "rank"); });
  ASSERT_TRUE(crew.board().wait_for(under_way, 20));
  note_now(crew);
  ASSERT_TRUE(net.blackhole(1, 0));
  EXPECT_TRUE(crew.finish());
}

TEST_F(Cable, AKilledPeerIsToldToAll) {
  const NetNamespaces net({.hosts = hosts});
  ASSERT_TRUE(net.made());
  Crew crew({.ranks = hosts + 1, .environment = {"TUTTI_DEBUG=NONE"}},
            [&](Seat& seat) { call_until_told(seat, net, hosts, death_limit_s, "rank 1/4"); });
  ASSERT_TRUE(crew.board().wait_for(under_way, 20));
  note_now(crew);
  crew.kill(1);
  EXPECT_TRUE(crew.finish());
}

}  // namespace
}  // namespace tutti::testing
