// A network that is cut for a while, for good, or for large packets alone: what is shorter than TUTTI_SILENCE_MS is
// survived, what is longer is told within a second more, and what loses large packets is told as that.
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>

#include "support/call.h"
#include "support/cut_off.h"
#include "support/service_time.h"

namespace tutti::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int hosts = 2;
constexpr int ranks = 4;
constexpr int silence_ms = 2'000;

enum Word : std::size_t { under_way, cut_at, mended, never, told };  // told: one per rank

/// As on Linux before 6.15.
std::atomic<bool>& knows_no_rto_max() {
  static std::atomic<bool> old = false;
  return old;
}

std::optional<std::string> unavailable() {
  const auto why = NetNamespaces::unavailable();
  return why ? why : PacketWire::unavailable();
}

Team team(const std::vector<std::string>& more = {}) {
  Team all{.ranks = ranks,
           .environment = {"TUTTI_DEBUG=NONE", "TUTTI_TUNE=off", "TUTTI_SILENCE_MS=" + std::to_string(silence_ms)},
           .limit = std::chrono::seconds(120)};
  all.environment.insert(all.environment.end(), more.begin(), more.end());
  return all;
}

double seconds_since_cut(Seat& seat) {
  const auto at = Clock::time_point(Clock::duration(static_cast<Clock::rep>(seat.board().word(cut_at).load())));
  return std::chrono::duration<double>(Clock::now() - at).count();
}

void cut(Workers& workers, const NetNamespaces& net) {
  workers.board().raise(cut_at, static_cast<std::uint64_t>(Clock::now().time_since_epoch().count()));
  net.wire().cut(1);
}

tuttiResult_t all_reduce(tuttiComm_t comm, std::vector<float>& values, std::size_t count) {
  return tuttiAllReduce(values.data(), values.data(), count, tuttiFloat32, tuttiMax, comm, nullptr);
}

/// All-reduces of all the values, every second one of two alone if `some_short`, until one fails.
tuttiResult_t until_failure(Seat& seat, tuttiComm_t comm, std::vector<float>& values, bool some_short) {
  for (std::uint64_t call = 1;; ++call) {
    const auto result = all_reduce(comm, values, some_short && call % 2 == 1 ? 2 : values.size());
    if (seat.rank() == 0) seat.board().raise(under_way, call);
    if (result != tuttiSuccess) return result;
  }
}

class Outage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = unavailable()) GTEST_SKIP() << *why;
  }
};

struct Kernel {
  const char* name;
  bool old;
  int rounds;
};

class ShortOutage : public Outage, public ::testing::WithParamInterface<Kernel> {};
INSTANTIATE_TEST_SUITE_P(Kernels, ShortOutage,
                         ::testing::Values(Kernel{"this_one", false, 2}, Kernel{"older", true, 2}),
                         [](const auto& kernel) { return std::string(kernel.param.name); });
INSTANTIATE_TEST_SUITE_P(Nightly, ShortOutage,
                         ::testing::Values(Kernel{"this_one", false, 20}, Kernel{"older", true, 20}),
                         [](const auto& kernel) { return std::string(kernel.param.name); });

TEST_P(ShortOutage, IsSurvived) {
  for (int round = 0; round < GetParam().rounds; ++round) {
    const NetNamespaces net({.hosts = hosts, .faults = {{}}});
    ASSERT_TRUE(net.made());
    Workers workers(team(), [&](Seat& seat) {
      knows_no_rto_max() = GetParam().old;
      const auto comm = start_on(seat, net, seat.rank() % hosts);
      ASSERT_NE(comm, nullptr);
      std::vector<float> values(10'000);
      // All ranks go on until one says that the network has been well for some calls.
      for (std::uint64_t call = 1, after = 0; after < 50; ++call) {
        values[0] = seat.rank() == 0 && seat.board().word(mended) != 0 ? 1 : 0;
        const auto result = all_reduce(comm, values, call % 2 == 0 ? values.size() : 2);
        ASSERT_TRUE(result == tuttiSuccess)
            << tuttiGetLastError(comm) << ", " << seconds_since_cut(seat) << " s after the cut";
        if (values[0] == 1) ++after;
        if (seat.rank() == 0) seat.board().raise(under_way, call);
      }
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
    ASSERT_TRUE(workers.board().wait_for(under_way, 20 + 7 * static_cast<std::uint64_t>(round)));
    cut(workers, net);
    constexpr std::chrono::milliseconds length(silence_ms * 9 / 10);
    EXPECT_FALSE(workers.board().wait_for(mended, 1, length));
    net.wire().cut(1, false);
    workers.board().raise(mended, 1);
    ASSERT_TRUE(workers.finish()) << "round " << round;
  }
}

TEST_F(Outage, ThatLastsIsToldBetweenTheLimitAndASecondMore) {
  const NetNamespaces net({.hosts = hosts, .faults = {{}}});
  ASSERT_TRUE(net.made());
  Workers workers(team(), [&](Seat& seat) {
    const auto comm = start_on(seat, net, seat.rank() % hosts);
    ASSERT_NE(comm, nullptr);
    std::vector<float> values(10'000);
    const auto result = until_failure(seat, comm, values, /*some_short=*/true);
    const double after_s = seconds_since_cut(seat);
    const std::string words = tuttiGetLastError(comm);
    EXPECT_EQ(result, tuttiRemoteError) << words;
    EXPECT_GE(after_s, silence_ms * 1e-3) << words;
    EXPECT_LE(after_s, silence_ms * 1e-3 + 1 * patience()) << words;
    // The first of the other host.
    EXPECT_NE(words.find(seat.rank() % hosts == 0 ? "rank 1/4" : "rank 0/4"), std::string::npos) << words;
    // What comes afterwards wakes nobody again and again.
    seat.board().raise(told + static_cast<std::size_t>(seat.rank()), 1);
    ASSERT_TRUE(seat.board().wait_for(mended, 1));
    const double before_s = service_seconds();
    EXPECT_FALSE(seat.board().wait_for(never, 1, std::chrono::milliseconds(1'500)));
    EXPECT_LT(service_seconds() - before_s, 0.5);
    EXPECT_TRUE(ok(tuttiCommAbort(comm)));
  });
  ASSERT_TRUE(workers.board().wait_for(under_way, 20));
  cut(workers, net);
  for (std::size_t rank = 0; rank < ranks; ++rank) ASSERT_TRUE(workers.board().wait_for(told + rank, 1));
  net.wire().cut(1, false);
  workers.board().raise(mended, 1);
  ASSERT_TRUE(workers.finish());
}

/// While a start waits for its last rank nothing is sent but probes, of which a bad network loses several in a row.
TEST_F(Outage, IsSurvivedByAStartThatWaits) {
  constexpr std::chrono::seconds length(6);
  const NetNamespaces net({.hosts = hosts, .faults = {{}}});
  ASSERT_TRUE(net.made());
  Workers workers(team(), [&](Seat& seat) {
    const bool last = seat.rank() == ranks - 2;  // on the host of rank 0
    ASSERT_TRUE(!last || seat.board().wait_for(mended, 1));
    seat.board().raise(told + static_cast<std::size_t>(seat.rank()), 1);
    const auto comm = start_on(seat, net, seat.rank() % hosts);
    ASSERT_NE(comm, nullptr);
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
  for (const std::size_t rank : {0U, 1U, ranks - 1U}) ASSERT_TRUE(workers.board().wait_for(told + rank, 1));
  EXPECT_FALSE(workers.board().wait_for(never, 1, std::chrono::seconds(1)));  // they meet: nothing tells when
  net.wire().cut(1);
  EXPECT_FALSE(workers.board().wait_for(never, 1, length));
  net.wire().cut(1, false);
  workers.board().raise(mended, 1);
  ASSERT_TRUE(workers.finish());
}

TEST_F(Outage, OfLargePacketsIsToldAsThat) {
  constexpr std::uint64_t passes = 600;
  const NetNamespaces net({.hosts = hosts, .faults = {{}}});
  ASSERT_TRUE(net.made());
  Workers workers(team(), [&](Seat& seat) {
    const auto comm = start_on(seat, net, seat.rank() % hosts);
    ASSERT_NE(comm, nullptr);
    std::vector<float> values(100'000);
    const auto result = until_failure(seat, comm, values, /*some_short=*/false);
    const std::string words = tuttiGetLastError(comm);
    EXPECT_EQ(result, tuttiRemoteError) << words;
    EXPECT_LE(seconds_since_cut(seat), 12 * patience()) << words;
    for (const char* const part : {"loses large packets", "from 10.77.0.", " to 10.77.0.", "(eth0, MTU "})
      EXPECT_NE(words.find(part), std::string::npos) << words;
    EXPECT_TRUE(ok(tuttiCommAbort(comm)));
  });
  ASSERT_TRUE(workers.board().wait_for(under_way, 5));
  workers.board().raise(cut_at, static_cast<std::uint64_t>(Clock::now().time_since_epoch().count()));
  net.wire().lose_larger_than(passes);
  ASSERT_TRUE(workers.finish());
}

/// Loss at random and a slow network are neither.
TEST_F(Outage, NightlyBadNetworksAreNotTakenForOne) {
  for (const WireFaults& faults : {WireFaults{.loss = 0.15}, WireFaults{.mbps = 1}}) {
    const NetNamespaces net({.hosts = hosts, .faults = {faults}});
    ASSERT_TRUE(net.made());
    launch_ranks(team({"TUTTI_SILENCE_MS=4000"}), [&](Seat& seat) {
      const auto comm = start_on(seat, net, seat.rank() % hosts);
      ASSERT_NE(comm, nullptr);
      std::vector<float> values(20'000);
      const auto begun = Clock::now();
      for (float over = 0; over == 0; over = values[0]) {
        values[0] = Clock::now() - begun > std::chrono::seconds(60) ? 1 : 0;
        ASSERT_TRUE(all_reduce(comm, values, values.size()) == tuttiSuccess) << tuttiGetLastError(comm);
      }
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
  }
}

}  // namespace
}  // namespace tutti::testing

// This program's function comes before that of the C library, also for the library under test.
// NOLINTBEGIN: the C library's name
#pragma GCC visibility push(default)
extern "C" int setsockopt(int fd, int level, int option, const void* value, socklen_t length) noexcept {
  constexpr int rto_max = 44;
  if (level == IPPROTO_TCP && option == rto_max && tutti::testing::knows_no_rto_max()) {
    errno = ENOPROTOOPT;
    return -1;
  }
  using Set = int (*)(int, int, int, const void*, socklen_t);
  static const auto set = reinterpret_cast<Set>(::dlsym(RTLD_NEXT, "setsockopt"));
  return set(fd, level, option, value, length);
}
#pragma GCC visibility pop
// NOLINTEND
