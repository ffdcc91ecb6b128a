// Limits on waiting, of a communicator and of single calls: a call that waits in vain ends with a sentence that names
// the rank it waited for and where the limit was set; others keep theirs.
#include <signal.h>

#include <array>

#include <fmt/format.h>

#include "support/call.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

constexpr int short_ms = 100;
constexpr int long_ms = 3'600'000;

struct Setup {
  Layout layout;
  const char* transport;
  bool hosts = false;  ///< each process is on a host of its own, as far as it can tell
};

class TimeLimits : public ::testing::TestWithParam<Setup> {
 protected:
  static void run(const std::function<void(Seat&)>& body, const char* limit_ms = "3600000") {
    launch_ranks({.ranks = 3,
                  .layout = GetParam().layout,
                  .environment = {std::string("TUTTI_TRANSPORT=") + GetParam().transport, "TUTTI_DEBUG=NONE",
                                  std::string("TUTTI_TIMEOUT_MS=") + limit_ms}},
                 body);
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, TimeLimits,
                         ::testing::Values(Setup{Layout::threads, "auto"}, Setup{Layout::processes, "auto"},
                                           Setup{Layout::processes, "slots"}, Setup{Layout::processes, "socket"}),
                         [](const auto& test) {
                           return fmt::format("{}_{}", name(test.param.layout), test.param.transport);
                         });

/// How a call is made. Each waits for rank 2, which makes none. A rank that is slow may find that another's limit has
/// ended the communicator before it begins.
enum class Way { blocking, large, queued, grouped, received, counts };
constexpr std::array ways = {Way::blocking, Way::large, Way::queued, Way::grouped, Way::received, Way::counts};

tuttiResult_t call(Way way, tuttiComm_t comm) {
  std::vector<float> x(way == Way::large ? 1 << 20 : 10);
  const auto sum = [&](tuttiStream_t stream) {
    return tuttiAllReduce(x.data(), x.data(), x.size(), tuttiFloat32, tuttiSum, comm, stream);
  };
  switch (way) {
    case Way::received: return tuttiRecv(x.data(), x.size(), tuttiFloat32, 2, comm, nullptr);
    case Way::grouped: {
      EXPECT_TRUE(ok(tuttiGroupStart()));
      const auto added = sum(nullptr), ended = tuttiGroupEnd();
      return added != tuttiSuccess ? added : ended;
    }
    case Way::queued: {
      tuttiStream_t stream = nullptr;
      EXPECT_TRUE(ok(tuttiStreamCreate(&stream)));
      const auto queued = sum(stream), waited = tuttiStreamSynchronize(stream);
      EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
      return queued != tuttiSuccess ? queued : waited;
    }
    case Way::counts: {
      const std::array<std::size_t, 3> counts{1, 1, 1}, begins{0, 1, 2};
      std::vector<float> all(3);
      return tuttiAllGatherV(x.data(), 1, all.data(), counts.data(), begins.data(), tuttiFloat32, comm, nullptr);
    }
    case Way::blocking:
    case Way::large: break;
  }
  return sum(nullptr);
}

/// Rank 0 calls with a short limit, set by `limit`, rank 1 with none that matters, rank 2 never.
void expect_timeout(Seat& seat, tuttiComm_t comm, Way way, const std::string& from,
                    const std::function<void()>& limit) {
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(run_call({.count = 10, .seed = 1}, seat.here(), seat.ranks(), {comm}), "");
  if (seat.rank() == 0) {
    limit();
    const auto result = call(way, comm);
    EXPECT_TRUE(fails(result, tuttiTimeout, from, comm));
    // Who was waited for: on a loaded machine perhaps rank 1, which was late.
    const std::string words = tuttiGetLastError(comm);
    EXPECT_TRUE(words.find("rank 2") != words.npos || words.find("rank 1") != words.npos) << words;
    EXPECT_EQ(tuttiBarrier(comm, nullptr), tuttiTimeout) << "the first error stays";
  } else if (seat.rank() == 1 && way != Way::received) {
    EXPECT_NE(call(way, comm), tuttiSuccess) << "ended by rank 0";
  }
  ASSERT_TRUE(seat.meet());
  (void)tuttiCommDestroy(comm);
}

tuttiConfig_t config_with(int ms) {
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.callTimeoutMs = ms;
  return config;
}

TEST_P(TimeLimits, OfACommunicatorEndACallThatWaitsInVain) {
  run([](Seat& seat) {
    for (const Way way : ways) {
      const auto config = config_with(seat.rank() == 0 ? short_ms : long_ms);
      // Rank 0's limit holds for its first calls, too, in which it may wait for ranks that are slow to come.
      const auto comm = seat.init_one(&config);
      ASSERT_NE(comm, nullptr);
      ASSERT_TRUE(seat.rank() != 0 || ok(tuttiCommSetTimeout(comm, long_ms)));
      tuttiComm_t derived = nullptr;
      const auto limits = config_with(seat.rank() == 0 ? short_ms : TUTTI_CONFIG_UNDEF_INT);
      ASSERT_TRUE(ok(tuttiCommSplit(comm, 0, seat.rank(), &derived, &limits)));
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      if (seat.rank() == 0) {
        const auto result = call(way, derived);
        EXPECT_TRUE(fails(result, tuttiTimeout, "tuttiConfig_t::callTimeoutMs", derived));
      } else if (seat.rank() == 1 && way != Way::received) {
        EXPECT_NE(call(way, derived), tuttiSuccess) << "ended by rank 0";
      }
      ASSERT_TRUE(seat.meet());
      (void)tuttiCommDestroy(derived);
    }
  });
}

/// Calls that wait for nobody, until one rank is so many behind that its descriptors would be overwritten.
TEST_P(TimeLimits, NameTheRankThatIsManyCallsBehind) {
  if (GetParam().transport != std::string("auto")) GTEST_SKIP() << "calls send messages, and wait for their receivers";
  run([](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    EXPECT_EQ(run_call({.count = 10, .seed = 1}, seat.here(), seat.ranks(), {comm}), "");
    ASSERT_TRUE(seat.rank() != 0 || ok(tuttiCommSetTimeout(comm, 10 * short_ms)));
    std::vector<float> x(10);
    auto result = tuttiSuccess;
    while (seat.rank() < 2 && result == tuttiSuccess)
      result = tuttiBroadcast(x.data(), x.data(), x.size(), tuttiFloat32, 0, comm, nullptr);
    if (seat.rank() == 0) {
      EXPECT_TRUE(fails(result, tuttiTimeout, "tuttiCommSetTimeout", comm));
      const std::string words = tuttiGetLastError(comm);
      // Rank 1 on a loaded machine alone.
      EXPECT_TRUE(words.find("the last call of rank 2 is #") != words.npos ||
                  words.find("the last call of rank 1 is #") != words.npos)
          << words;
    }
    ASSERT_TRUE(seat.meet());
    (void)tuttiCommDestroy(comm);
  });
}

class TimeLimitsOfFour : public ::testing::TestWithParam<Setup> {
 protected:
  static Team team() {
    Team team{.ranks = 4,
              .layout = GetParam().layout,
              .environment = {std::string("TUTTI_TRANSPORT=") + GetParam().transport, "TUTTI_DEBUG=NONE",
                              "TUTTI_SILENCE_MS=60000"}};
    if (GetParam().hosts)
      team.environment_of = [](int rank) { return std::vector{fmt::format("TUTTI_HOSTID=host {}", rank)}; };
    return team;
  }
  /// Rank 0's limit is so long that all ranks have begun and told for whom they wait, on a loaded machine, too.
  static tuttiComm_t start(Seat& seat, int limit_ms) {
    const auto comm = seat.init_one();
    EXPECT_EQ(run_call({.count = 10, .seed = 1}, seat.here(), seat.ranks(), {comm}), "");
    EXPECT_TRUE(seat.rank() != 0 || ok(tuttiCommSetTimeout(comm, static_cast<int>(limit_ms * patience()))));
    EXPECT_TRUE(seat.meet());
    return comm;
  }
  /// From the rank before this one.
  static tuttiResult_t receive(Seat& seat, tuttiComm_t comm) {
    float x = 0;
    return tuttiRecv(&x, 1, tuttiFloat32, (seat.rank() + seat.ranks() - 1) % seat.ranks(), comm, nullptr);
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, TimeLimitsOfFour,
                         ::testing::Values(Setup{Layout::threads, "auto"}, Setup{Layout::processes, "slots"},
                                           Setup{Layout::processes, "socket"},
                                           Setup{.layout = Layout::processes, .transport = "auto", .hosts = true}),
                         [](const auto& test) {
                           return fmt::format("{}_{}{}", name(test.param.layout), test.param.transport,
                                              test.param.hosts ? "_hosts" : "");
                         });

/// Rank 1 makes no call. In a barrier over sockets ranks wait for ranks that wait themselves, and in a chain of
/// receives rank 0 waits for rank 3, that one for rank 2, and rank 2 for rank 1.
TEST_P(TimeLimitsOfFour, NameTheRankThatHoldsUpAllOthers) {
  launch_ranks(team(), [](Seat& seat) {
    for (const bool barrier : {true, false}) {
      const auto comm = start(seat, 5 * short_ms);
      if (seat.rank() != 1) {
        const auto result = barrier ? tuttiBarrier(comm, nullptr) : receive(seat, comm);
        EXPECT_TRUE(fails(result, tuttiTimeout, "rank 1 waits in no call", comm));
        EXPECT_TRUE(
            fails(result, tuttiTimeout, barrier ? "the last call of rank 1 is #1" : "rank 2 waits for rank 1", comm));
      }
      ASSERT_TRUE(seat.meet());
      (void)tuttiCommDestroy(comm);
    }
  });
}

TEST_P(TimeLimitsOfFour, TellOfRanksThatWaitForEachOther) {
  launch_ranks(team(), [](Seat& seat) {
    const auto comm = start(seat, 5 * short_ms);
    EXPECT_TRUE(
        fails(receive(seat, comm), tuttiTimeout,
              "rank 3 waits for rank 2, rank 2 waits for rank 1, rank 1 waits for rank 0, so they wait for each "
              "other",
              comm));
    ASSERT_TRUE(seat.meet());
    (void)tuttiCommDestroy(comm);
  });
}

/// What it last said is that it waits for rank 0, and so it seems that all wait for each other.
TEST_P(TimeLimitsOfFour, NameARankThatIsStopped) {
  if (GetParam().layout == Layout::threads) GTEST_SKIP() << "all would be stopped";
  constexpr std::size_t done = 4;
  Workers workers(team(), [](Seat& seat) {
    const auto comm = start(seat, 20 * short_ms);
    seat.board().raise(static_cast<std::size_t>(seat.rank()), 1);
    const auto result = receive(seat, comm);
    if (seat.rank() == 0) {
      // Over sockets as across hosts, nobody looks into /proc.
      const bool remote = GetParam().hosts || GetParam().transport == std::string("socket");
      const std::string stopped = remote ? "nothing has come from rank 1 for " : "rank 1 is stopped";
      EXPECT_TRUE(fails(result, tuttiTimeout, "rank 2 waits for rank 1, " + stopped, comm));
      seat.board().raise(done, 1);
    }
    ASSERT_TRUE(seat.meet());
    (void)tuttiCommDestroy(comm);
  });
  for (std::size_t rank = 0; rank < 4; ++rank) ASSERT_TRUE(workers.board().wait_for(rank, 1));
  ASSERT_EQ(::kill(workers.pid_of(1), SIGSTOP), 0);
  EXPECT_TRUE(workers.board().wait_for(done, 1));
  ASSERT_EQ(::kill(workers.pid_of(1), SIGCONT), 0);
  EXPECT_TRUE(workers.finish());
}

TEST_P(TimeLimits, OfOneCallAreSetBeforeIt) {
  run([](Seat& seat) {
    for (const Way way : ways) {
      const auto comm = seat.init_one();
      expect_timeout(seat, comm, way, "tuttiCommSetTimeout",
                     [&] { EXPECT_TRUE(ok(tuttiCommSetTimeout(comm, short_ms))); });
    }
  });
}

TEST_P(TimeLimits, AreTakenOverByCommunicatorsMadeFromAnother) {
  run([](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    // A limit that is longer than this start takes on a loaded machine, yet ends.
    ASSERT_TRUE(seat.rank() != 0 || ok(tuttiCommSetTimeout(comm, 20 * short_ms)));
    tuttiComm_t split = nullptr, listed = nullptr;
    const std::array all = {0, 1, 2};
    ASSERT_TRUE(ok(tuttiCommSplit(comm, 0, seat.rank(), &split, nullptr)));
    ASSERT_TRUE(ok(tuttiCommCreateGroup(comm, all.data(), 3, &listed, nullptr)));
    for (const auto made : {split, listed}) expect_timeout(seat, made, Way::blocking, "tuttiCommSetTimeout", [] {});
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// The setting that all limits replace.
TEST_P(TimeLimits, OfTheEnvironmentHoldWhereNothingElseIsSaid) {
  run(
      [](Seat& seat) {
        const auto config = config_with(seat.rank() == 0 ? TUTTI_CONFIG_UNDEF_INT : 0);
        const auto comm = seat.init_one(&config);
        expect_timeout(seat, comm, Way::blocking, "TUTTI_TIMEOUT_MS", [] {});
      },
      "1500");
}

/// A call that is queued keeps the limit that it was made with: here none, while the next one's is short.
TEST_P(TimeLimits, OfQueuedCallsStay) {
  run([](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    tuttiStream_t stream = nullptr;
    ASSERT_TRUE(ok(tuttiStreamCreate(&stream)));
    float x = 1;
    if (seat.rank() == 2) {
      ASSERT_TRUE(seat.board().wait_for(0, 1));
    }
    ASSERT_TRUE(ok(tuttiAllReduce(&x, &x, 1, tuttiFloat32, tuttiSum, comm, stream)));
    ASSERT_TRUE(ok(tuttiCommSetTimeout(comm, 1)));
    if (seat.rank() == 0) {
      // Longer than the limit that the queued call must not have; nothing tells when a call has not ended.
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(short_ms);
      while (std::chrono::steady_clock::now() < until) ASSERT_EQ(tuttiStreamQuery(stream), tuttiInProgress);
      seat.board().raise(0, 1);
    }
    EXPECT_TRUE(ok(tuttiStreamSynchronize(stream)));
    EXPECT_EQ(x, 3);
    EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST_P(TimeLimits, ThatAreNoneAreRefused) {
  run([](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    EXPECT_TRUE(fails(tuttiCommSetTimeout(comm, -1), tuttiInvalidArgument, "timeoutMs -1"));
    EXPECT_TRUE(fails(tuttiCommSetTimeout(nullptr, 1), tuttiInvalidArgument, "comm is NULL"));
    tuttiComm_t made = nullptr;
    const auto config = config_with(-1);
    EXPECT_TRUE(fails(tuttiCommSplit(comm, 0, 0, &made, &config), tuttiInvalidArgument, "callTimeoutMs"));
    EXPECT_TRUE(ok(tuttiCommSetTimeout(comm, 0)));
    EXPECT_EQ(run_call({.count = 10, .seed = 1}, seat.here(), seat.ranks(), {comm}), "");
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
