// Communicators that cannot come about: every rank that waits hears why, in words, within its limit.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "support/call.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

using Clock = std::chrono::steady_clock;

tuttiConfig_t limited(int ms) {
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.timeoutMs = ms;
  return config;
}

constexpr double gone_limit_s = 3;  // refused for a second is gone

double since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

/// What one rank that must fail gets: code and words.
void expect_no_start(const tuttiUniqueId& id, int ranks, int rank, const tuttiConfig_t& config, tuttiResult_t code,
                     const std::string& words) {
  auto* comm = reinterpret_cast<tuttiComm_t>(0x10);
  EXPECT_TRUE(fails(tuttiCommInitRankConfig(&comm, ranks, id, rank, &config), code, words));
}

/// The process is as good as before.
void expect_next_start_works(Seat& seat) {
  ASSERT_TRUE(seat.meet());
  const auto comm = seat.init_one();
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(run_call({.count = 10, .seed = 4}, seat.here(), seat.ranks(), {comm}), "");
  EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
}

class Start : public ::testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, Start, ::testing::Values(Layout::threads, Layout::processes),
                         [](const auto& test) { return name(test.param); });

TEST_P(Start, MissingRanksAreNamedAtTheLimit) {
  launch_ranks({.ranks = 3, .layout = GetParam(), .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const auto id = seat.next_id();
    if (seat.rank() != 1) expect_no_start(id, 5, seat.rank(), limited(700), tuttiTimeout, "1 (never seen)");
    expect_next_start_works(seat);
  });
}

/// Each waits for the other where it never comes.
TEST_P(Start, RanksWithDifferentIds) {
  launch_ranks({.ranks = 2, .layout = GetParam(), .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const std::array ids = {seat.next_id(), seat.next_id()};
    const int rank = seat.rank();
    const std::string other = rank == 0 ? "1 (never seen)" : "0 (never seen)";
    expect_no_start(ids[static_cast<std::size_t>(rank)], 2, rank, limited(1'000), tuttiTimeout, other);
    expect_next_start_works(seat);
  });
}

TEST_P(Start, LimitOfTheCallWins) {
  launch_ranks({.ranks = 2, .layout = GetParam(), .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const auto id = seat.next_id();
    const auto start = Clock::now();
    expect_no_start(id, 3, seat.rank(), limited(300), tuttiTimeout, "");
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(30));  // the default is two minutes
    expect_next_start_works(seat);
  });
}

/// The meeting before it, which the launcher's variables ask for, is part of the start.
TEST(Starts, LimitOfTheCallWinsWhereRanksMeetByTheirEnvironment) {
  const std::string job = "PMIX_NAMESPACE=start-" + std::to_string(::getpid());
  launch_ranks({.ranks = 1, .environment = {"TUTTI_DEBUG=NONE", "TUTTI_RANK=1", "TUTTI_NRANKS=2", job}}, [](Seat&) {
    const auto start = Clock::now();
    tuttiComm_t comm = nullptr;
    const auto config = limited(300);
    EXPECT_TRUE(fails(tuttiCommInitFromEnv(&comm, &config), tuttiTimeout, "rank 0"));
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(30));  // the default is two minutes
  });
}

/// So many descriptors can be opened from now on.
void leave_descriptors(int count) {
  rlim_t limit = 0;
  for (; count > 0; ++limit)
    if (::fcntl(static_cast<int>(limit), F_GETFD) < 0) --count;
  const rlimit few{.rlim_cur = limit, .rlim_max = limit};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
}

/// It has enough to say so, and may end at once.
TEST(Starts, TheReasonWhyRank0DoesNotListenIsToldToTheOthers) {
  Team team{.ranks = 3, .environment = {"TUTTI_DEBUG=NONE", "TUTTI_NRANKS=3"}};
  team.environment.push_back("PMIX_NAMESPACE=deaf-" + std::to_string(::getpid()));
  team.environment_of = [](int rank) { return std::vector{"TUTTI_RANK=" + std::to_string(rank)}; };
  launch_ranks(team, [](Seat& seat) {
    tuttiComm_t comm = nullptr;
    if (seat.rank() == 0) {
      leave_descriptors(3);
      EXPECT_TRUE(fails(tuttiCommInitFromEnv(&comm, nullptr), tuttiSystemError, "Too many open files"));
    } else {
      EXPECT_TRUE(
          fails(tuttiCommInitFromEnv(&comm, nullptr), tuttiSystemError, "rank 0 could not open the meeting point: "));
    }
  });
}

TEST_P(Start, ARankTwice) {
  launch_ranks({.ranks = 2, .layout = GetParam(), .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const auto id = seat.next_id();
    expect_no_start(id, 2, 0, limited(20'000), tuttiInvalidUsage, "rank 0 is claimed by two processes");
    expect_next_start_works(seat);
  });
}

TEST_P(Start, RanksToldOfDifferentSizes) {
  launch_ranks({.ranks = 2, .layout = GetParam(), .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const auto id = seat.next_id();
    expect_no_start(id, 2 + seat.rank(), seat.rank(), limited(20'000), tuttiInvalidUsage, "was told of");
    expect_next_start_works(seat);
  });
}

TEST_P(Start, OneWantsItDeterministic) {
  launch_ranks({.ranks = 2, .layout = GetParam(), .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const auto id = seat.next_id();
    tuttiConfig_t config = limited(20'000);
    config.deterministic = seat.rank();
    expect_no_start(id, 2, seat.rank(), config, tuttiInvalidUsage, "deterministic");
    expect_next_start_works(seat);
  });
}

TEST(Starts, SettingsThatMustAgree) {
  for (const char* setting :
       {"TUTTI_TRANSPORT=slots", "TUTTI_NCHANNELS=3", "TUTTI_BUFFSIZE=16K", "TUTTI_ALGO=one_shot"})
    launch_ranks({.ranks = 2, .environment = {"TUTTI_DEBUG=NONE"}}, [setting](Seat& seat) {
      const std::string text = setting;
      const std::string name = text.substr(0, text.find('='));
      if (seat.rank() == 1) ::setenv(name.c_str(), text.substr(name.size() + 1).c_str(), 1);
      const auto id = seat.next_id();
      expect_no_start(id, 2, seat.rank(), limited(20'000), tuttiInvalidUsage, "rank 1 has " + text);
      ASSERT_TRUE(seat.meet());
    });
}

TEST(Starts, SettingThatDoesNotParseIsNamed) {
  launch_ranks({.ranks = 1, .environment = {"TUTTI_NCHANNELS=many"}}, [](Seat&) {
    tuttiUniqueId id;
    EXPECT_TRUE(fails(tuttiGetUniqueId(&id), tuttiInvalidArgument, "TUTTI_NCHANNELS=many"));
  });
}

/// An id works once; and the one whose listener has gone is refused, not waited for.
TEST(Starts, IdOfAnotherTime) {
  launch_ranks({.ranks = 2, .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const auto id = seat.next_id();
    tuttiComm_t comm = nullptr;
    ASSERT_TRUE(ok(tuttiCommInitRank(&comm, 2, id, seat.rank())));
    ASSERT_TRUE(seat.meet());
    tuttiComm_t again = nullptr;
    const auto config = limited(60'000);
    const auto begun = Clock::now();
    EXPECT_TRUE(fails(tuttiCommInitRankConfig(&again, 2, id, seat.rank(), &config), tuttiRemoteError,
                      "or all its ranks are there already"));
    EXPECT_LT(since(begun), gone_limit_s * patience());
    EXPECT_EQ(run_call({.count = 10, .seed = 4}, seat.here(), seat.ranks(), {comm}), "");
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST(Starts, ARankThatDiesWhileOthersWait) {
  Workers workers({.ranks = 3, .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const auto id = seat.next_id();
    if (seat.rank() == 2) {
      seat.board().wait_for(0, 1);  // killed here
      return;
    }
    seat.board().raise(1 + static_cast<std::size_t>(seat.rank()), 1);
    // It has never said that it exists, so this is known at the limit alone.
    expect_no_start(id, 3, seat.rank(), limited(1'000), tuttiTimeout, "2 (never seen)");
  });
  ASSERT_TRUE(workers.board().wait_for(1, 1));
  ASSERT_TRUE(workers.board().wait_for(2, 1));
  workers.kill(2);
  workers.finish();
}

/// The process that made the id is gone before the others come.
TEST(Starts, TheOneThatMadeTheIdDies) {
  Workers workers({.ranks = 3, .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const auto id = seat.next_id();
    seat.board().raise(static_cast<std::size_t>(seat.rank()), 1);
    if (seat.rank() == 0) {
      seat.board().wait_for(10, 1);  // killed here
      return;
    }
    if (!seat.board().wait_for(10, 1)) return;
    const auto config = limited(60'000);
    tuttiComm_t comm = nullptr;
    const auto begun = Clock::now();
    EXPECT_TRUE(fails(tuttiCommInitRankConfig(&comm, 3, id, seat.rank(), &config), tuttiRemoteError,
                      "the process that made the id (as a rule that of rank 0) has ended"));
    EXPECT_LT(since(begun), gone_limit_s * patience());
  });
  for (const std::size_t rank : {0, 1, 2}) ASSERT_TRUE(workers.board().wait_for(rank, 1));
  workers.kill(0);
  workers.board().raise(10, 1);
  workers.finish();
}

/// Ranks 0 and 2 differ; rank 1 comes when both know it, and rank 0 is on its way to its end, or stays.
void come_after_the_failure(bool root_stays) {
  Workers workers({.ranks = 3, .environment = {"TUTTI_DEBUG=NONE"}}, [root_stays](Seat& seat) {
    if (seat.rank() == 2) ::setenv("TUTTI_NCHANNELS", "3", 1);
    const auto id = seat.next_id();
    if (seat.rank() == 1) {
      if (!seat.board().wait_for(10, 1) || !seat.board().wait_for(12, 1)) return;
    }
    const auto begun = Clock::now();
    expect_no_start(id, 3, seat.rank(), limited(60'000), tuttiInvalidUsage, "rank 2 has TUTTI_NCHANNELS=3");
    EXPECT_LT(since(begun), gone_limit_s * patience());
    seat.board().raise(10 + static_cast<std::size_t>(seat.rank()), 1);
    if (seat.rank() == 0 && root_stays) seat.board().wait_for(11, 1);
  });
  EXPECT_TRUE(workers.finish());
}

TEST(Starts, ARankThatComesAfterTheFailureHearsOfIt) {
  come_after_the_failure(/*root_stays=*/true);
}

TEST(Starts, ARankThatComesWhileTheRootEndsHearsOfTheFailure) {
  come_after_the_failure(/*root_stays=*/false);
}

/// It finds that out before it calls anybody.
TEST_P(Start, ARankWithoutTheGpuItAsksForTellsTheOthers) {
  for (const int odd : {0, 1})
    launch_ranks({.ranks = 3, .layout = GetParam(), .environment = {"TUTTI_DEBUG=NONE"}}, [odd](Seat& seat) {
      const auto id = seat.next_id();
      tuttiConfig_t config = limited(60'000);
      config.device = seat.rank() == odd ? 9'999 : -1;
      const auto begun = Clock::now();
      tuttiComm_t comm = nullptr;
      EXPECT_NE(tuttiCommInitRankConfig(&comm, 3, id, seat.rank(), &config), tuttiSuccess);
      EXPECT_LT(since(begun), gone_limit_s * patience());
      const std::string words = tuttiGetLastError(nullptr);
      if (seat.rank() != odd) {
        EXPECT_NE(words.find("rank " + std::to_string(odd) + " ("), std::string::npos) << words;
        EXPECT_NE(words.find("could not join"), std::string::npos) << words;
      }
      expect_next_start_works(seat);
    });
}

/// A setting that one process alone has.
TEST(Starts, SettingThatDoesNotParseIsToldToTheOthers) {
  launch_ranks({.ranks = 3, .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    if (seat.rank() == 1) ::setenv("TUTTI_NCHANNELS", "many", 1);
    const auto id = seat.next_id();
    const auto begun = Clock::now();
    expect_no_start(id, 3, seat.rank(), limited(60'000), tuttiInvalidArgument, "TUTTI_NCHANNELS=many");
    EXPECT_LT(since(begun), gone_limit_s * patience());
  });
}

/// Its calls are not made, so it does not come.
TEST(Starts, ARankWhoseGroupIsRefusedTellsTheOthers) {
  launch_ranks({.ranks = 2, .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const auto id = seat.next_id();
    const auto begun = Clock::now();
    if (seat.rank() == 0) return expect_no_start(id, 2, 0, limited(60'000), tuttiInvalidUsage, "rank 1");
    tuttiComm_t alone = nullptr;
    tuttiUniqueId own;
    ASSERT_TRUE(ok(tuttiGetUniqueId(&own)));
    ASSERT_TRUE(ok(tuttiCommInitRank(&alone, 1, own, 0)));
    tuttiComm_t comm = nullptr;
    ASSERT_TRUE(ok(tuttiGroupStart()));
    ASSERT_TRUE(ok(tuttiCommInitRank(&comm, 2, id, 1)));
    EXPECT_NE(tuttiAllReduce(nullptr, nullptr, 1, tuttiInt32, tuttiSum, alone, nullptr), tuttiSuccess);
    EXPECT_NE(tuttiGroupEnd(), tuttiSuccess);
    EXPECT_LT(since(begun), gone_limit_s * patience());
    EXPECT_TRUE(ok(tuttiCommDestroy(alone)));
  });
}

/// Who made the id may end as soon as it has heard that the start failed.
TEST(Starts, TheReasonArrivesAlthoughTheOneThatMadeTheIdEnds) {
  launch_ranks({.ranks = 3, .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const auto id = seat.next_id();
    const int limit_ms = seat.rank() == 0 ? 700 : 60'000;
    expect_no_start(id, 4, seat.rank(), limited(limit_ms), tuttiTimeout, "3 (never seen)");
  });
}

/// Order and pace of the start do not matter.
TEST_P(Start, RanksThatComeOneAfterTheOther) {
  launch_ranks({.ranks = 5, .layout = GetParam()}, [](Seat& seat) {
    for (int round = 0; round < 5; ++round) {
      const auto id = seat.next_id();
      // The last one first; nobody waits for the start of those before: only for their turn.
      const int place = (4 - seat.rank() + round) % 5;
      ASSERT_TRUE(seat.board().wait_for(10, static_cast<std::uint64_t>(round * 5 + place)));
      seat.board().raise(10, static_cast<std::uint64_t>(round * 5 + place + 1));
      tuttiComm_t comm = nullptr;
      ASSERT_TRUE(ok(tuttiCommInitRank(&comm, 5, id, seat.rank())));
      EXPECT_EQ(run_call({.count = 10, .seed = 4}, seat.here(), 5, {comm}), "");
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    }
  });
}

}  // namespace
}  // namespace tutti::testing
