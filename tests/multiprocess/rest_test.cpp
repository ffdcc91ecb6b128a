// Ranks in no call while others are lost or fail: what concerns them not goes on, and what does fails with a cause.
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

/// Words of the board.
enum Word : std::size_t { failed, told_by };  // told_by: and the ranks' following ones

class Rest : public ::testing::TestWithParam<const char*> {
 protected:
  static Team team(int ranks) {
    return {.ranks = ranks, .environment = {std::string("TUTTI_TRANSPORT=") + GetParam(), "TUTTI_DEBUG=NONE"}};
  }

  static void hear_of_a_loss(tuttiComm_t comm, Seat& seat) {
    tuttiResult_t heard = tuttiSuccess;
    while (heard == tuttiSuccess && !seat.board().over()) {
      ASSERT_TRUE(ok(tuttiCommGetAsyncError(comm, &heard)));
      std::this_thread::yield();
    }
    EXPECT_EQ(heard, tuttiRemoteError);
  }

  static void let_time_pass(std::chrono::milliseconds time, Seat& seat) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end && !seat.board().over()) std::this_thread::yield();
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, Rest, ::testing::Values("auto", "slots", "socket"),
                         [](const auto& param) { return std::string(param.param); });

std::vector<int> numbers(std::size_t count, int first) {
  std::vector<int> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = first + static_cast<int>(i);
  return all;
}

/// The receivers ask when other ranks have failed already, and longer after the end than any patience of the library.
TEST_P(Rest, WhatAnEndedRankHasSentIsReceivedHoweverLate) {
  launch_ranks(team(4), [](Seat& seat) {
    const std::vector<int> expected = numbers(1'000, 7);
    std::vector<int> x(expected.size());
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
    if (seat.rank() == 3) {
      EXPECT_TRUE(ok(tuttiSend(expected.data(), expected.size(), tuttiInt32, 2, comm, nullptr)));
      tuttiRequest_t request = nullptr;
      EXPECT_TRUE(ok(tuttiIsend(expected.data(), expected.size(), tuttiInt32, 1, 5, comm, &request)));
      EXPECT_TRUE(ok(tuttiWait(&request, nullptr)));
      ::_exit(HasFailure() ? 1 : 0);
    }
    hear_of_a_loss(comm, seat);
    if (seat.rank() == 0) {
      EXPECT_TRUE(fails(tuttiBarrier(comm, nullptr), tuttiRemoteError, "rank 3/4", comm));
      seat.board().raise(failed, 1);
    }
    ASSERT_TRUE(seat.board().wait_for(failed, 1));
    let_time_pass(std::chrono::milliseconds(2'300), seat);
    if (seat.rank() == 2) {
      EXPECT_TRUE(ok(tuttiRecv(x.data(), x.size(), tuttiInt32, 3, comm, nullptr)));
    }
    if (seat.rank() == 1) {
      tuttiRequest_t request = nullptr;
      EXPECT_TRUE(ok(tuttiIrecv(x.data(), x.size(), tuttiInt32, TUTTI_ANY_SOURCE, 5, comm, &request)));
      EXPECT_TRUE(ok(tuttiWait(&request, nullptr)));
    }
    if (seat.rank() != 0) {
      EXPECT_EQ(x, expected);
    }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// A probe takes nothing, and needs nothing more of the rank either. When there is nothing left, it says why.
TEST_P(Rest, WhatAnEndedRankHasSentIsProbedAndThenReceived) {
  for (const bool waits : {true, false})
    for (const int source : {1, TUTTI_ANY_SOURCE})
      launch_ranks(team(2), [&](Seat& seat) {
        int x = 4711;
        const auto comm = seat.init_one();
        ASSERT_NE(comm, nullptr);
        ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
        tuttiRequest_t request = nullptr;
        if (seat.rank() == 1) {
          EXPECT_TRUE(ok(tuttiIsend(&x, 1, tuttiInt32, 0, 3, comm, &request)));
          EXPECT_TRUE(ok(tuttiWait(&request, nullptr)));
          ::_exit(HasFailure() ? 1 : 0);
        }
        hear_of_a_loss(comm, seat);
        tuttiStatus_t status{};
        int found = 0;
        if (waits) {
          ASSERT_TRUE(ok(tuttiProbe(source, 3, comm, &status)));
        }
        while (!waits && found == 0 && !seat.board().over())
          ASSERT_TRUE(ok(tuttiIprobe(source, 3, comm, &found, &status)));
        EXPECT_EQ(status.source, 1);
        x = 0;
        ASSERT_TRUE(ok(tuttiIrecv(&x, 1, tuttiInt32, 1, 3, comm, &request)));
        EXPECT_TRUE(ok(tuttiWait(&request, nullptr)));
        EXPECT_EQ(x, 4711);
        tuttiResult_t last = tuttiSuccess;
        while (last == tuttiSuccess && !seat.board().over())
          last = waits ? tuttiProbe(source, 3, comm, &status) : tuttiIprobe(source, 3, comm, &found, &status);
        EXPECT_TRUE(fails(last, tuttiRemoteError, "rank 1/2", comm));
        EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      });
}

TEST_P(Rest, RanksThatAreLeftExchangeMessagesUntilACallNeedsTheLostOne) {
  launch_ranks(team(3), [](Seat& seat) {
    const std::vector<int> mine = numbers(100'000, seat.rank());
    std::vector<int> x(mine.size());
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
    if (seat.rank() == 1) ::_exit(HasFailure() ? 1 : 0);
    hear_of_a_loss(comm, seat);
    ASSERT_TRUE(ok(tuttiGroupStart()));
    ASSERT_TRUE(ok(tuttiSend(mine.data(), mine.size(), tuttiInt32, 2 - seat.rank(), comm, nullptr)));
    ASSERT_TRUE(ok(tuttiRecv(x.data(), x.size(), tuttiInt32, 2 - seat.rank(), comm, nullptr)));
    EXPECT_TRUE(ok(tuttiGroupEnd()));
    EXPECT_EQ(x, numbers(x.size(), 2 - seat.rank()));
    // Between hosts the lost rank may have completed a call that begins sooner.
    if (std::string(GetParam()) == "socket") let_time_pass(std::chrono::milliseconds(2'300), seat);
    // The root needs nothing of the others. It hears all the same.
    EXPECT_TRUE(
        fails(tuttiBroadcast(x.data(), x.data(), 1, tuttiInt32, 0, comm, nullptr), tuttiRemoteError, "rank 1/3", comm));
    EXPECT_TRUE(fails(tuttiSend(mine.data(), 1, tuttiInt32, 2 - seat.rank(), comm, nullptr), tuttiRemoteError,
                      "rank 1/3", comm));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// Rank 0 waits for rank 3, which fails as it waits for rank 7, and keeps its communicator. All others are at rest, and
/// ranks 0 and 3 have no control connection.
TEST_P(Rest, WhoWaitsForARankThatFailsHearsOfIt) {
  launch_ranks(team(8), [](Seat& seat) {
    int x = 0;
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
    if (seat.rank() == 7) ::_exit(HasFailure() ? 1 : 0);
    if (seat.rank() == 3 || seat.rank() == 0) {
      const int from = seat.rank() == 3 ? 7 : 3;
      EXPECT_TRUE(fails(tuttiRecv(&x, 1, tuttiInt32, from, comm, nullptr), tuttiRemoteError, "rank 7/8", comm));
      seat.board().raise(told_by + static_cast<std::size_t>(seat.rank()), 1);
    }
    for (const std::size_t rank : {0, 3}) EXPECT_TRUE(seat.board().wait_for(told_by + rank, 1));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// Rank 3 has sent nothing to rank 0, and leaves or ends. All ranks to which rank 0 has a control connection have
/// failed before, but live on.
TEST_P(Rest, WhoWaitsForARankThatIsGoneHearsOfItByRanksThatHaveFailed) {
  for (const bool leaves : {true, false})
    launch_ranks(team(8), [leaves](Seat& seat) {
      int x = 0;
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      ASSERT_TRUE(ok(tuttiBarrier(comm, nullptr)));
      if (seat.rank() == 5) ::_exit(HasFailure() ? 1 : 0);
      if (seat.rank() != 0 && seat.rank() != 3) {
        EXPECT_TRUE(fails(tuttiRecv(&x, 1, tuttiInt32, 5, comm, nullptr), tuttiRemoteError, "rank 5/8", comm));
        seat.board().raise(told_by + static_cast<std::size_t>(seat.rank()), 1);
      }
      for (const std::size_t rank : {1, 2, 4, 6, 7}) ASSERT_TRUE(seat.board().wait_for(told_by + rank, 1));
      if (seat.rank() == 3 && !leaves) ::_exit(HasFailure() ? 1 : 0);
      if (seat.rank() == 0) {
        EXPECT_EQ(tuttiRecv(&x, 1, tuttiInt32, 3, comm, nullptr), tuttiRemoteError);
        seat.board().raise(told_by, 1);
      }
      if (seat.rank() != 3) {
        EXPECT_TRUE(seat.board().wait_for(told_by, 1));
      }
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
}

/// One rank is alone on its host, and has control connections to some of the seven others. Nothing has been sent
/// before.
struct LoneRank {
  int lone, gone, waits;
};
class RestOfTwoHosts : public ::testing::TestWithParam<LoneRank> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RestOfTwoHosts,
                         ::testing::Values(LoneRank{0, 3, 0}, LoneRank{0, 0, 3}, LoneRank{7, 2, 7}, LoneRank{7, 7, 2}),
                         [](const auto& param) {
                           return fmt::format("{}_alone_{}_goes_{}_waits", param.param.lone, param.param.gone,
                                              param.param.waits);
                         });

TEST_P(RestOfTwoHosts, HearOfEachRankThatIsGone) {
  const int lone = GetParam().lone, gone = GetParam().gone, waits = GetParam().waits;
  const auto host_of = [lone](int rank) {
    return std::vector<std::string>{fmt::format("TUTTI_HOSTID=rest-{}", rank == lone)};
  };
  for (const bool leaves : {true, false})
    launch_ranks({.ranks = 8, .environment = {"TUTTI_DEBUG=NONE"}, .environment_of = host_of}, [&](Seat& seat) {
      int x = 0;
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      ASSERT_TRUE(seat.meet());
      if (seat.rank() == gone && !leaves) ::_exit(HasFailure() ? 1 : 0);
      if (seat.rank() == waits) {
        EXPECT_EQ(tuttiRecv(&x, 1, tuttiInt32, gone, comm, nullptr), tuttiRemoteError);
        seat.board().raise(told_by, 1);
      }
      if (seat.rank() != gone) {
        EXPECT_TRUE(seat.board().wait_for(told_by, 1));
      }
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
}

/// Of 8 ranks over sockets rank 0 has no control connection to rank 5, and all that could tell it have left in order
/// before rank 5 goes, without having sent anything.
TEST(RestOverSockets, WhoWaitsForARankOfWhichNobodyIsLeftToTellCallsIt) {
  for (const bool leaves : {true, false})
    launch_ranks({.ranks = 8, .environment = {"TUTTI_TRANSPORT=socket", "TUTTI_DEBUG=NONE"}}, [leaves](Seat& seat) {
      constexpr std::size_t gone = 1;  // and one for each rank
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      ASSERT_TRUE(seat.meet());
      int x = 0;
      if (seat.rank() == 0) {
        EXPECT_TRUE(fails(tuttiRecv(&x, 1, tuttiInt32, 5, comm, nullptr), tuttiRemoteError, "rank 5/8", comm));
      }
      if (seat.rank() == 5) {
        for (const std::size_t other : {1, 2, 3, 4, 6, 7}) ASSERT_TRUE(seat.board().wait_for(gone + other, 1));
        if (!leaves) ::_exit(::testing::Test::HasFailure() ? 1 : 0);
      }
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
      seat.board().raise(gone + static_cast<std::size_t>(seat.rank()), 1);
    });
}

/// Rank 0 is in a call, rank 1 in none, when rank 2 ends. That rank 1 leaves without the call is no mistake.
TEST_P(Rest, WhoLeavesBecauseOfALossIsNotBlamed) {
  launch_ranks(team(3), [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    int x = 1;
    ASSERT_TRUE(ok(tuttiAllReduce(&x, &x, 1, tuttiInt32, tuttiSum, comm, nullptr)));
    ASSERT_TRUE(seat.meet());
    if (seat.rank() == 0) {
      EXPECT_TRUE(
          fails(tuttiAllReduce(&x, &x, 1, tuttiInt32, tuttiSum, comm, nullptr), tuttiRemoteError, "rank 2/3", comm));
    }
    if (seat.rank() == 1) {
      EXPECT_TRUE(ok(tuttiSend(&x, 1, tuttiInt32, 0, comm, nullptr)));
      hear_of_a_loss(comm, seat);
    }
    if (seat.rank() == 2) {
      let_time_pass(std::chrono::milliseconds(300), seat);  // rank 0 is in its call by then, most likely
      ::_exit(HasFailure() ? 1 : 0);
    }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// What ends the communicator of one rank for another reason than a loss ends it for ranks at rest, too.
TEST_P(Rest, AnAbortReachesRanksInNoCall) {
  launch_ranks(team(8), [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    ASSERT_TRUE(seat.meet());
    if (seat.rank() == 3) {
      EXPECT_TRUE(ok(tuttiCommAbort(comm)));
      return;
    }
    hear_of_a_loss(comm, seat);
    int x = 0;
    const int other = seat.rank() == 0 ? 1 : 0;
    EXPECT_TRUE(fails(tuttiSend(&x, 1, tuttiInt32, other, comm, nullptr), tuttiRemoteError, "rank 3/8", comm));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
