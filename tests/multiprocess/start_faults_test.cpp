// One rank of a start lacks something, at any moment: all ranks are told soon, with the reason and who lacks it.
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "support/call.h"
#include "support/failing_calls.h"
#include "support/free_port.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int ranks = 3;
constexpr double told_limit_s = 3;  // two seconds is what a rank tries to tell the others, who wait for a minute
constexpr const char* reason = "Too many open files";
constexpr const char* remedy = "raise ulimit -n";

enum Word : std::size_t { has_failed, succeeded, told };  // the last one: and one per rank

double since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

class Faults : public ::testing::TestWithParam<const char*> {
 protected:
  static Team team() {
    return {.ranks = ranks,
            .environment = {"TUTTI_DEBUG=NONE", "TUTTI_INIT_TIMEOUT_MS=60000", "TUTTI_TUNE=off",
                            std::string("TUTTI_TRANSPORT=") + GetParam()},
            .limit = std::chrono::seconds(100)};
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, Faults, ::testing::Values("auto", "socket"),
                         [](const auto& test) { return std::string(test.param); });

/// What a rank is told of a start in which `odd` lacks something, or has wrong settings.
void expect_told(Seat& seat, int odd, tuttiResult_t result, double after_s, const std::string& why = reason) {
  const std::string words = tuttiGetLastError(nullptr);
  seat.board().raise(result == tuttiSuccess ? succeeded : told + static_cast<std::size_t>(seat.rank()), 1);
  EXPECT_LT(after_s, told_limit_s * patience()) << words;
  if (result == tuttiSuccess) return;
  EXPECT_NE(words.find(why), std::string::npos) << words;
  if (why == reason) {
    EXPECT_NE(words.find(remedy), std::string::npos) << words;
  }
  if (seat.rank() != odd) {
    EXPECT_NE(words.find("rank " + std::to_string(odd)), std::string::npos) << words;
  }
}

/// True: a call has failed, whether the start went well nevertheless or not.
bool start_with_fault(const Team& team, int odd, int nth, bool root_is_odd) {
  SCOPED_TRACE(::testing::Message() << "call " << nth << " of rank " << odd);
  Workers workers(team, [&](Seat& seat) {
    const bool makes_id = (seat.rank() == odd) == root_is_odd && (root_is_odd || seat.rank() == (odd + 1) % ranks);
    const auto id = seat.board().share_id(0, makes_id);
    if (!seat.meet()) return;
    if (seat.rank() == odd) fail_calls(all_calls(), nth, EMFILE);
    const auto begun = Clock::now();
    tuttiComm_t comm = nullptr;
    const auto result = tuttiCommInitRank(&comm, ranks, id, seat.rank());
    const double after_s = since(begun);
    if (seat.rank() == odd && stop_failing()) seat.board().raise(has_failed, 1);
    expect_told(seat, odd, result, after_s);
    if (result != tuttiSuccess) return;
    EXPECT_EQ(run_call({.count = 10, .seed = 4}, seat.here(), seat.ranks(), {comm}), "");
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
  EXPECT_TRUE(workers.finish());
  // Nobody is left behind by ranks that failed.
  if (workers.board().word(succeeded) != 0) {
    for (std::size_t rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(workers.board().word(told + rank), 0u) << "rank " << rank;
  }
  return workers.board().word(has_failed) != 0;
}

void fail_each_call(const Team& team, bool root_is_odd) {
  int failed = 0;
  while (start_with_fault(team, /*odd=*/1, failed + 1, root_is_odd)) {
    ++failed;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(failed, 5) << "calls of the start";
}

TEST_P(Faults, EachCallOfTheRankWhereTheyMeet) {
  fail_each_call(team(), /*root_is_odd=*/true);
}

TEST_P(Faults, EachCallOfAnotherRank) {
  fail_each_call(team(), /*root_is_odd=*/false);
}

enum class Meet { on_host, at_address };

/// Of ranks that a launcher starts: rank 0 has the root, and may end as soon as it has failed.
Team launched(Team team, Meet how) {
  team.environment.push_back("TUTTI_NRANKS=" + std::to_string(ranks));
  if (how == Meet::on_host) {
    team.environment.push_back("TUTTI_JOB_ID=faults-" + std::to_string(::getpid()) + "-" + std::to_string(free_port()));
  } else {
    team.environment.push_back("TUTTI_COMM_ID=127.0.0.1:" + std::to_string(free_port()));
    team.environment.push_back("TUTTI_COMM_SECRET=correct horse battery");
  }
  team.environment_of = [](int rank) { return std::vector{"TUTTI_RANK=" + std::to_string(rank)}; };
  return team;
}

void start_without(const Team& team, int odd, SystemCall call) {
  SCOPED_TRACE(::testing::Message() << name(call) << " fails on rank " << odd);
  Workers workers(team, [odd, call](Seat& seat) {
    if (!seat.meet()) return;
    if (seat.rank() == odd) fail_calls({call}, 1, EMFILE, /*always=*/true);
    const auto begun = Clock::now();
    tuttiComm_t comm = nullptr;
    const auto result = tuttiCommInitFromEnv(&comm, nullptr);
    const double after_s = since(begun);
    EXPECT_NE(result, tuttiSuccess);
    expect_told(seat, odd, result, after_s);
  });
  EXPECT_TRUE(workers.finish());
}

TEST_P(Faults, WhatIsRefusedForGood) {
  for (const int odd : {0, 2})
    for (const auto how : {Meet::on_host, Meet::at_address})
      for (const auto call : {SystemCall::memfd, SystemCall::eventfd, SystemCall::truncate, SystemCall::thread})
        start_without(launched(team(), how), odd, call);
}

struct Refused {
  const char* variable;
  const char* value;
  const char* why;
};
constexpr Refused settings_refused[] = {{"TUTTI_ALGO", "no such", "TUTTI_ALGO"},
                                        {"TUTTI_NCHANNELS", "99", "TUTTI_NCHANNELS=99"},
                                        {"TUTTI_PLAN_FILE", "/nonexistent", "/nonexistent"}};

/// `late`: the others come when that rank knows it.
void start_refused(const Team& team, int odd, const Refused& setting, bool late) {
  SCOPED_TRACE(::testing::Message() << setting.variable << " of rank " << odd << (late ? ", others late" : ""));
  Workers workers(team, [&](Seat& seat) {
    const bool is_odd = seat.rank() == odd;
    if (is_odd) ::setenv(setting.variable, setting.value, 1);
    if (late && !is_odd && !seat.board().wait_for(has_failed, 1)) return;
    const auto begun = Clock::now();
    tuttiComm_t comm = nullptr;
    const auto result = tuttiCommInitFromEnv(&comm, nullptr);
    const double after_s = since(begun);
    if (is_odd) seat.board().raise(has_failed, 1);
    EXPECT_NE(result, tuttiSuccess);
    expect_told(seat, odd, result, after_s, setting.why);
  });
  EXPECT_TRUE(workers.finish());
}

/// Before it has a word with anybody.
TEST_P(Faults, SettingsThatAreRefused) {
  int nth = 0;
  for (const auto how : {Meet::on_host, Meet::at_address})
    for (const int odd : {0, 2}) start_refused(launched(team(), how), odd, settings_refused[nth++ % 3], false);
}

TEST(Refused, EverySettingInEveryWay) {
  const Team team{.ranks = ranks, .environment = {"TUTTI_DEBUG=NONE", "TUTTI_INIT_TIMEOUT_MS=60000"}};
  for (const auto how : {Meet::on_host, Meet::at_address})
    for (const Refused& setting : settings_refused) {
      for (const int odd : {0, 2}) start_refused(launched(team, how), odd, setting, false);
      start_refused(launched(team, how), 0, setting, /*late=*/true);
    }
  start_refused(launched(team, Meet::at_address), 2, settings_refused[0], /*late=*/true);
}

/// All have the same: each says its own, at once.
TEST(Refused, TheSameSettingOfAll) {
  Team team{.ranks = ranks, .environment = {"TUTTI_DEBUG=NONE", "TUTTI_INIT_TIMEOUT_MS=60000", "TUTTI_ALGO=no such"}};
  for (const auto how : {Meet::on_host, Meet::at_address})
    launch_ranks(launched(team, how), [](Seat&) {
      const auto begun = Clock::now();
      tuttiComm_t comm = nullptr;
      EXPECT_TRUE(fails(tuttiCommInitFromEnv(&comm, nullptr), tuttiInvalidArgument, "TUTTI_ALGO"));
      EXPECT_LT(since(begun), told_limit_s * patience());
    });
}

/// It sees that rank 0 is there, and cannot ask it.
TEST(Refused, ARankWithoutASocketForTheFirstQuestion) {
  Team team{.ranks = 2,
            .environment = {"TUTTI_DEBUG=NONE", "TUTTI_NRANKS=2", "TUTTI_JOB_ID=mute-" + std::to_string(free_port())}};
  team.environment_of = [](int rank) { return std::vector{"TUTTI_RANK=" + std::to_string(rank)}; };
  Workers workers(team, [](Seat& seat) {
    tuttiComm_t comm = nullptr;
    if (seat.rank() == 1) fail_calls({SystemCall::socket}, 1, EMFILE, /*always=*/true);
    const auto result = tuttiCommInitFromEnv(&comm, nullptr);  // rank 0 is killed here
    EXPECT_TRUE(fails(result, tuttiSystemError, reason));
    EXPECT_NE(std::string(tuttiGetLastError(nullptr)).find(remedy), std::string::npos);
    seat.board().raise(has_failed, 1);
  });
  ASSERT_TRUE(workers.board().wait_for(has_failed, 1));
  workers.kill(0);
  EXPECT_TRUE(workers.finish());
}

/// Rank 0 waits for ranks that it cannot let in. It gives up, and lets them in to hear why.
TEST_P(Faults, ARankZeroThatCannotAnswerTheFirstQuestion) {
  Workers workers(launched(team(), Meet::on_host), [](Seat& seat) {
    if (!seat.meet()) return;
    if (seat.rank() == 0) fail_calls({SystemCall::accept_on_host}, 1, EMFILE, /*always=*/true);
    const auto begun = Clock::now();
    tuttiComm_t comm = nullptr;
    const auto result = tuttiCommInitFromEnv(&comm, nullptr);
    const double after_s = since(begun);
    if (seat.rank() == 0) stop_failing();  // as of now its descriptors are free again
    EXPECT_NE(result, tuttiSuccess);
    expect_told(seat, 0, result, after_s);
  });
  EXPECT_TRUE(workers.finish());
}

/// The first one has failed, and goes on telling so where the second one meets.
TEST_P(Faults, TheNextStartAtTheSameAddressWorks) {
  launch_ranks(launched(team(), Meet::at_address), [](Seat& seat) {
    tuttiComm_t comm = nullptr;
    if (seat.rank() == 0) fail_calls({SystemCall::memfd}, 1, EMFILE);
    EXPECT_TRUE(fails(tuttiCommInitFromEnv(&comm, nullptr), tuttiSystemError, reason));
    stop_failing();
    ASSERT_TRUE(ok(tuttiCommInitFromEnv(&comm, nullptr)));
    EXPECT_EQ(run_call({.count = 10, .seed = 4}, seat.here(), seat.ranks(), {comm}), "");
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// A GPU that one rank asks for and does not get: the parent has made no call, and goes on.
TEST_P(Faults, AGpuRefusedInASplitIsToldToTheOthers) {
  for (const bool split : {true, false})
    launch_ranks(team(), [split](Seat& seat) {
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
      config.device = seat.rank() == 1 ? 9'999 : -1;
      const std::vector<int> all = {0, 1, 2};
      tuttiComm_t made = nullptr;
      const auto begun = Clock::now();
      const auto result = split ? tuttiCommSplit(comm, 0, 0, &made, &config)
                                : tuttiCommCreateGroup(comm, all.data(), ranks, &made, &config);
      EXPECT_NE(result, tuttiSuccess);
      EXPECT_LT(since(begun), told_limit_s * patience());
      const std::string words = tuttiGetLastError(nullptr);
      if (seat.rank() != 1) {
        EXPECT_NE(words.find("rank 1"), std::string::npos) << words;
        EXPECT_NE(words.find("could not join"), std::string::npos) << words;
      }
      EXPECT_EQ(run_call({.count = 10, .seed = 4}, seat.here(), seat.ranks(), {comm}), "");
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
}

/// Between hosts too, new communicators meet at a root: one rank has its address, and is not there yet.
void lose_before_it_joins(const Team& team, const std::string& how, bool killed) {
  SCOPED_TRACE(::testing::Message() << how << (killed ? ", killed" : ", stopped"));
  enum Held : std::size_t { is_held = 20, is_told };
  Workers workers(team, [&](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    // Its memory is the first thing that it makes when it joins.
    if (seat.rank() == 1)
      before_call(SystemCall::memfd, [&seat] {
        seat.board().raise(is_held, 1);
        seat.board().wait_for(is_told, 1);  // where it is lost
      });
    tuttiComm_t made = nullptr;
    const std::vector<int> all = {0, 1, 2};
    const auto result = how == "split" ? tuttiCommSplit(comm, 0, 0, &made, nullptr)
                                       : tuttiCommCreateGroup(comm, all.data(), ranks, &made, nullptr);
    if (seat.rank() == 1) return;
    EXPECT_TRUE(fails(result, tuttiRemoteError, "rank 1"));
    seat.board().raise(told + static_cast<std::size_t>(seat.rank()), 1);
    seat.board().wait_for(is_told, 1);
  });
  ASSERT_TRUE(workers.board().wait_for(is_held, 1));
  const auto begun = Clock::now();
  if (killed)
    workers.kill(1);
  else
    ASSERT_EQ(::kill(workers.pid_of(1), SIGSTOP), 0);
  for (const std::size_t rank : {0, 2}) ASSERT_TRUE(workers.board().wait_for(told + rank, 1));
  EXPECT_LT(since(begun), told_limit_s * patience());
  if (!killed) {
    ASSERT_EQ(::kill(workers.pid_of(1), SIGCONT), 0);
  }
  workers.board().raise(is_told, 1);
  EXPECT_TRUE(workers.finish());
}

TEST_P(Faults, ARankIsLostThatIsToBeInAnotherCommunicator) {
  Team short_silence = team();
  short_silence.environment.push_back("TUTTI_SILENCE_MS=1000");
  for (const std::string how : {"split", "group"})
    for (const bool killed : {true, false}) lose_before_it_joins(short_silence, how, killed);
}

}  // namespace
}  // namespace tutti::testing
