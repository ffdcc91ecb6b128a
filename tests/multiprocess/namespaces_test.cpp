// Ranks on several hosts: network namespaces of this machine. Calls give what they should; cables are cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "support/call.h"
#include "support/forced_turns.h"
#include "support/host_start.h"

namespace tutti::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double told_limit_s = 5;  // of silence, as reliability promises; a proven death takes two
constexpr double death_limit_s = 2;
constexpr double leave_limit_s = 1;

/// Rank r is on host r mod hosts: neighbours are on different ones.
struct Place {
  int hosts;
  int each;  ///< ranks of a host
  bool ipv6;
};

class Hosts : public ::testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    if (const auto why = NetNamespaces::unavailable()) GTEST_SKIP() << *why;
  }
};

INSTANTIATE_TEST_SUITE_P(Shapes, Hosts, ::testing::Values(Place{2, 1, false}, Place{3, 2, false}, Place{2, 2, true}),
                         [](const auto& test) {
                           return fmt::format("{}_hosts_of_{}{}", test.param.hosts, test.param.each,
                                              test.param.ipv6 ? "_ipv6" : "");
                         });

TEST_P(Hosts, EveryCollectiveGivesWhatItShould) {
  const Place shape = GetParam();
  const NetNamespaces net({.hosts = shape.hosts, .ipv4 = !shape.ipv6, .ipv6 = shape.ipv6});
  ASSERT_TRUE(net.made());
  launch_ranks({.ranks = shape.hosts * shape.each}, [&](Seat& seat) {
    const auto comm = start_on(seat, net, seat.rank() % shape.hosts);
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

/// Which turns of the algorithms are run: the product of all hosts, ranks and algorithms takes many minutes.
struct Product {
  int hosts;
  int each;
  std::size_t step;  ///< every so manyth turn
};

class EveryAlgorithm : public ::testing::TestWithParam<Product> {
 protected:
  void SetUp() override {
    if (const auto why = NetNamespaces::unavailable()) GTEST_SKIP() << *why;
  }
};

/// Ranks lie in turns or in blocks, and the network has IPv4 or IPv6 alone: each of the four with every fourth turn.
TEST_P(EveryAlgorithm, GivesWhatItShould) {
  const auto [hosts, each, step] = GetParam();
  const int ranks = hosts * each;
  const NetNamespaces ipv4({.hosts = hosts});
  const NetNamespaces ipv6({.hosts = hosts, .ipv4 = false, .ipv6 = true});
  ASSERT_TRUE(ipv4.made() && ipv6.made());
  std::uint64_t forced = 0;
  const auto place = [ranks, hosts = hosts](std::size_t nth) {
    const bool blocks = (nth / 2 + static_cast<std::size_t>(hosts)) % 2 != 0;
    std::vector<int> host_of;
    for (int rank = 0; rank < ranks; ++rank) host_of.push_back(blocks ? rank / (ranks / hosts) : rank % hosts);
    return host_of;
  };
  for (std::size_t nth = 0;; nth += step) {
    const auto host_of = place(nth);
    std::vector<int> firsts;
    for (const int host : host_of)
      firsts.push_back(static_cast<int>(std::ranges::find(host_of, host) - host_of.begin()));
    if (each == 1) firsts.clear();
    const auto turns = turns_of(ranks, firsts);
    if (nth >= turns.size()) break;
    const NetNamespaces& net = (nth + static_cast<std::size_t>(each)) % 2 == 0 ? ipv4 : ipv6;
    // With 16 ranks on a core, and more besides, a service thread was seen to get none for three seconds.
    Crew crew({.ranks = ranks,
               .environment = {setting(turns[nth]), "TUTTI_BUFFSIZE=4096", "TUTTI_SILENCE_MS=0"},
               .limit = std::chrono::seconds(120),
               .words = turn_words(ranks)},
              [&](Seat& seat) {
                const auto comm = start_on(seat, net, host_of[static_cast<std::size_t>(seat.rank())]);
                ASSERT_NE(comm, nullptr);
                run_turn(seat, comm, turns[nth], Mix::by_rank, firsts);
                EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
              });
    ASSERT_TRUE(crew.finish()) << setting(turns[nth]);
    expect_same_bits(crew, ranks, setting(turns[nth]));
    forced += crew.board().word(static_cast<std::size_t>(Reach::fifo)).load();
  }
  EXPECT_GT(forced, 0U);
}

std::vector<Product> whole_product() {
  std::vector<Product> all;
  for (int hosts = 2; hosts <= 8; ++hosts)
    for (int each = 1; each <= 4; ++each) all.push_back({hosts, each, 1});
  return all;
}
std::string name_of(const ::testing::TestParamInfo<Product>& test) {
  return fmt::format("{}_hosts_of_{}", test.param.hosts, test.param.each);
}
INSTANTIATE_TEST_SUITE_P(Slice, EveryAlgorithm, ::testing::Values(Product{2, 1, 5}, Product{3, 2, 4}), name_of);
INSTANTIATE_TEST_SUITE_P(Nightly, EveryAlgorithm, ::testing::ValuesIn(whole_product()), name_of);

/// Words of the board.
enum Word : std::size_t { under_way, done_to };

/// All ranks call until a call fails; when told, in what words, and how long leaving takes.
void call_until_told(Seat& seat, const NetNamespaces& net, int hosts, double limit_s, const std::string& named) {
  const auto comm = start_on(seat, net, seat.rank() % hosts);
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
