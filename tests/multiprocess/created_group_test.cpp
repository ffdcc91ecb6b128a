// Communicators made from others, while something happens to a rank: those that wait hear of it as in any other call,
// and what happens to a rank that is not to be in the new communicator does not matter.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "support/call.h"
#include "support/launch_ranks.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double told_limit_s = 2;
constexpr int silence_ms = 1'000;

enum Word : std::size_t { waits, event, stays, told };  // the last one: and one per rank

enum class Event { killed, stopped, aborts, own_abort, fails };
const char* name(Event event) {
  return std::array{"killed", "stopped", "aborts", "own_abort", "fails"}[static_cast<std::size_t>(event)];
}

/// As text: which call, transport, and what happens.
using Case = std::tuple<const char*, const char*, Event>;

class Regrouping : public ::testing::TestWithParam<Case> {
 protected:
  static const char* call() { return std::get<0>(GetParam()); }
  static Event happens() { return std::get<2>(GetParam()); }
  static Team team(int ranks) {
    return {.ranks = ranks,
            .environment = {"TUTTI_DEBUG=NONE", "TUTTI_INIT_TIMEOUT_MS=60000", "TUTTI_TUNE=off",
                            "TUTTI_SILENCE_MS=" + std::to_string(silence_ms),
                            std::string("TUTTI_TRANSPORT=") + std::get<1>(GetParam())}};
  }
};

std::string case_name(const ::testing::TestParamInfo<Case>& test) {
  return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param) + "_" + name(std::get<2>(test.param));
}

INSTANTIATE_TEST_SUITE_P(Events, Regrouping,
                         ::testing::Combine(::testing::Values("group", "split"), ::testing::Values("auto", "socket"),
                                            ::testing::Values(Event::killed, Event::stopped, Event::aborts,
                                                              Event::own_abort, Event::fails)),
                         case_name);

tuttiResult_t make_from(const char* call, tuttiComm_t comm, const std::vector<int>& members, tuttiComm_t* made) {
  if (std::string(call) == "split") return tuttiCommSplit(comm, 0, 0, made, nullptr);
  return tuttiCommCreateGroup(comm, members.data(), static_cast<int>(members.size()), made, nullptr);
}

/// Makes comm fail here: the other rank has no such call under way.
void fail(tuttiComm_t comm) {
  int one = 1;
  EXPECT_TRUE(ok(tuttiCommSetTimeout(comm, 100)));
  EXPECT_NE(tuttiRecv(&one, 1, tuttiInt32, 0, comm, nullptr), tuttiSuccess);
}

/// Says on the board that the call under way waits, once it has done so for a while.
struct Waiting {
  Board& board;
  int looks = -1;  ///< while waiting; negative: not for the call in question
  static void look(void* self) {
    auto& me = *static_cast<Waiting*>(self);
    if (me.looks >= 0 && ++me.looks == 500) me.board.raise(waits, 1);
  }
};

/// Rank 0 waits for rank 1, to which it happens.
TEST_P(Regrouping, TellsWhatHappensToAMember) {
  const char* const how = call();
  const Event what = happens();
  Workers workers(team(2), [how, what](Seat& seat) {
    Waiting waiting{.board = seat.board()};
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    config.progress = &Waiting::look;
    config.progressContext = &waiting;
    const auto comm = seat.init_one(&config);
    ASSERT_NE(comm, nullptr);
    int sum = 1;
    ASSERT_TRUE(ok(tuttiAllReduce(&sum, &sum, 1, tuttiInt32, tuttiSum, comm, nullptr)));
    if (seat.rank() == 1) {
      if (!seat.board().wait_for(event, 1)) return;
      if (what == Event::aborts) {
        EXPECT_TRUE(ok(tuttiCommAbort(comm)));
      }
      if (what == Event::fails) fail(comm);
      seat.board().wait_for(stays, 1);
      return;
    }
    waiting.looks = 0;
    std::thread other([&] {
      if (!seat.board().wait_for(event, 1) || what != Event::own_abort) return;
      const auto begun = Clock::now();
      EXPECT_TRUE(ok(tuttiCommAbort(comm)));
      EXPECT_LT(std::chrono::duration<double>(Clock::now() - begun).count(), 1.5 * patience());
    });
    tuttiComm_t made = nullptr;
    const auto result = make_from(how, comm, {0, 1}, &made);
    const auto told = Clock::now();
    EXPECT_NE(result, tuttiSuccess);
    const std::string words = tuttiGetLastError(nullptr);
    EXPECT_NE(words.find(what == Event::own_abort ? "abort" : "rank 1"), std::string::npos) << words;
    other.join();
    seat.board().raise(stays, 1);
    const auto at = std::chrono::duration<double>(told.time_since_epoch()).count();
    const auto happened = static_cast<double>(seat.board().word(event).load()) * 1e-9;
    EXPECT_LT(at - happened, (told_limit_s + (what == Event::stopped ? silence_ms * 2e-3 : 0)) * patience()) << words;
  });
  ASSERT_TRUE(workers.board().wait_for(waits, 1));
  workers.board().raise(event, static_cast<std::uint64_t>(Clock::now().time_since_epoch().count()));
  if (what == Event::killed) workers.kill(1);
  if (what == Event::stopped) {
    ASSERT_EQ(::kill(workers.pid_of(1), SIGSTOP), 0);
    ASSERT_TRUE(workers.board().wait_for(stays, 1));
    ASSERT_EQ(::kill(workers.pid_of(1), SIGCONT), 0);
  }
  EXPECT_TRUE(workers.finish());
}

class OfSurvivors : public ::testing::TestWithParam<const char*> {
 protected:
  static Team team() {
    return {.ranks = 4,
            .environment = {"TUTTI_DEBUG=NONE", "TUTTI_INIT_TIMEOUT_MS=60000", "TUTTI_TUNE=off",
                            std::string("TUTTI_TRANSPORT=") + GetParam()}};
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, OfSurvivors, ::testing::Values("auto", "slots", "socket"),
                         [](const auto& test) { return std::string(test.param); });

void expect_group_works(Seat& seat, tuttiComm_t comm) {
  const std::vector<int> members = {3, 0, 1};
  tuttiComm_t made = nullptr;
  ASSERT_TRUE(ok(tuttiCommCreateGroup(comm, members.data(), 3, &made, nullptr)));
  int place = -1;
  ASSERT_TRUE(ok(tuttiCommUserRank(made, &place)));
  EXPECT_EQ(members[static_cast<std::size_t>(place)], seat.rank());
  EXPECT_EQ(run_call({.count = 1000, .seed = 4}, {place}, 3, {made}), "");
  EXPECT_TRUE(ok(tuttiCommDestroy(made)));
  EXPECT_TRUE(ok(tuttiCommAbort(comm)));
}

/// Rank 2 is killed in a call of all, by which the parent fails on the others.
TEST_P(OfSurvivors, AGroupIsMadeFromWhatAKilledRankHasLeft) {
  Workers workers(team(), [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    int sum = 1;
    ASSERT_TRUE(ok(tuttiAllReduce(&sum, &sum, 1, tuttiInt32, tuttiSum, comm, nullptr)));
    if (!seat.meet()) return;
    if (seat.rank() == 2) {
      seat.board().raise(waits, 1);
      seat.board().wait_for(stays, 1);  // killed here
      return;
    }
    EXPECT_TRUE(fails(tuttiAllReduce(&sum, &sum, 1, tuttiInt32, tuttiSum, comm, nullptr), tuttiRemoteError, "rank 2"));
    expect_group_works(seat, comm);
  });
  ASSERT_TRUE(workers.board().wait_for(waits, 1));
  workers.kill(2);
  EXPECT_TRUE(workers.finish());
}

/// Rank 2 is killed while some of the others wait in the call, and rank 1 comes afterwards.
TEST_P(OfSurvivors, AGroupIsMadeWhileAnotherRankIsKilled) {
  Workers workers(team(), [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    int sum = 1;
    ASSERT_TRUE(ok(tuttiAllReduce(&sum, &sum, 1, tuttiInt32, tuttiSum, comm, nullptr)));
    if (!seat.meet()) return;
    if (seat.rank() == 2) {
      seat.board().raise(waits, 1);
      seat.board().wait_for(stays, 1);  // killed here
      return;
    }
    if (seat.rank() == 1) {
      tuttiResult_t failure = tuttiSuccess;
      while (failure == tuttiSuccess && !seat.board().over()) {
        ASSERT_TRUE(ok(tuttiCommGetAsyncError(comm, &failure)));
        std::this_thread::yield();
      }
    }
    expect_group_works(seat, comm);
  });
  ASSERT_TRUE(workers.board().wait_for(waits, 1));
  workers.kill(2);
  EXPECT_TRUE(workers.finish());
}

class MemberThatExits : public ::testing::TestWithParam<const char*> {
 protected:
  static Team team() {
    return {.ranks = 4,
            .environment = {"TUTTI_DEBUG=NONE", "TUTTI_INIT_TIMEOUT_MS=60000", "TUTTI_TUNE=off",
                            std::string("TUTTI_TRANSPORT=") + GetParam()}};
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, MemberThatExits, ::testing::Values("auto", "socket"),
                         [](const auto& test) { return std::string(test.param); });

void exit_after(unsigned spins) {
  for (; spins > 0; --spins) asm volatile("");
  ::_exit(0);
}

/// The process of rank 3 ends by itself: in place of the call, or after so many spins of another of its threads. Where
/// the group was not made before, the others get its name: its rank in the parent.
void lose_rank_3(const Team& team, const std::vector<int>& members, std::optional<unsigned> spins) {
  SCOPED_TRACE(::testing::Message() << "first member " << members[0] << ", " << (spins ? *spins : 0) << " spins");
  Workers workers(team, [&](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    int sum = 1;
    ASSERT_TRUE(ok(tuttiAllReduce(&sum, &sum, 1, tuttiInt32, tuttiSum, comm, nullptr)));
    if (!seat.meet()) return;
    if (seat.rank() == 3 && !spins) ::_exit(0);
    if (seat.rank() == 3) std::thread(exit_after, *spins).detach();
    tuttiComm_t made = nullptr;
    const auto begun = Clock::now();
    const auto result = make_from("group", comm, members, &made);
    if (seat.rank() == 3) {
      seat.board().wait_for(stays, 1);  // ends here
    } else if (result != tuttiSuccess) {
      EXPECT_TRUE(fails(result, tuttiRemoteError, "rank 3/4 (process"));
      EXPECT_LT(std::chrono::duration<double>(Clock::now() - begun).count(), told_limit_s * patience());
    }
    // Those that have been told stay: one that ends is lost to the others too.
    seat.board().raise(told + static_cast<std::size_t>(seat.rank()), 1);
    for (const std::size_t rank : {0, 1, 2}) seat.board().wait_for(told + rank, 1);
  });
  EXPECT_TRUE(workers.finish());
}

TEST_P(MemberThatExits, IsNamedByItsRankInTheParent) {
  std::mt19937 random(7);
  for (const std::vector<int>& members : {std::vector{3, 0, 1, 2}, std::vector{0, 2, 1, 3}}) {
    lose_rank_3(team(), members, std::nullopt);
    for (int round = 0; round < share_of(6); ++round) lose_rank_3(team(), members, random() % 10'000'000);
  }
}

}  // namespace
}  // namespace tutti::testing
