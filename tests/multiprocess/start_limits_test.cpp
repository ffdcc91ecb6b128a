// One limit for all of a start, whatever it is that does not come to an end.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "support/descriptors.h"
#include "support/free_port.h"
#include "support/launch_ranks.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int ranks = 3;
const int limit_ms = static_cast<int>(1'500 * patience());  // by the load at the beginning
const double told_limit_s = 1.1 * limit_ms * 1e-3 + 0.5;    // ranks give the root a tenth more to say who is missing

constexpr double few_limit_s = 4;  // an accept may be refused for two seconds before that is an error

enum Word : std::size_t { begins, told };  // told: and a word per rank

Team team_of(const char* transport) {
  return {.ranks = ranks,
          .environment = {std::string("TUTTI_TRANSPORT=") + transport, "TUTTI_DEBUG=NONE",
                          "TUTTI_INIT_TIMEOUT_MS=" + std::to_string(limit_ms)}};
}

class StartLimit : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transports, StartLimit, ::testing::Values("auto", "socket"),
                         [](const auto& param) { return std::string(param.param); });

/// Rank 1 is stopped at any moment of its start: while ranks meet, map areas, open connections, or just after that.
TEST_P(StartLimit, HoldsWhereverARankIsStopped) {
  std::mt19937 random(5);
  for (int round = 0; round < share_of(6); ++round) {
    Workers workers(team_of(GetParam()), [](Seat& seat) {
      const tuttiUniqueId id = seat.next_id();
      if (seat.rank() == 1) seat.board().raise(begins, 1);
      const auto begun = Clock::now();
      tuttiComm_t comm = nullptr;
      const auto result = tuttiCommInitRank(&comm, ranks, id, seat.rank());
      const std::string words = tuttiGetLastError(nullptr);
      if (seat.rank() != 1) {
        EXPECT_LT(std::chrono::duration<double>(Clock::now() - begun).count(), told_limit_s * patience()) << words;
        EXPECT_TRUE(result == tuttiSuccess || words.find("rank 1") != std::string::npos ||
                    words.find(" 1 (") != std::string::npos)
            << words;
      }
      seat.board().raise(told + static_cast<std::size_t>(seat.rank()), 1);
      if (comm != nullptr) {
        EXPECT_TRUE(ok(tuttiCommAbort(comm)));
      }
    });
    ASSERT_TRUE(workers.board().wait_for(begins, 1));
    for (unsigned spin = random() % 10'000'000; spin > 0; --spin) asm volatile("");
    ASSERT_EQ(::kill(workers.pid_of(1), SIGSTOP), 0);
    for (int rank = 0; rank < ranks; ++rank)
      ASSERT_TRUE(rank == 1 || workers.board().wait_for(told + static_cast<std::size_t>(rank), 1));
    ASSERT_EQ(::kill(workers.pid_of(1), SIGCONT), 0);
    ASSERT_TRUE(workers.finish()) << "round " << round;
  }
}

#ifndef __SANITIZE_ADDRESS__  // which needs descriptors itself
/// Rank 0 has fewer and fewer descriptors, but one. Either the start goes well, or all are told what is missing, within
/// the limit.
TEST_P(StartLimit, HoldsWithoutDescriptorsAndNamesThem) {
  int failed = 0;
  for (const int more : {1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26}) {
    Workers workers(team_of(GetParam()), [more](Seat& seat) {
      if (seat.rank() == 0) {
        const auto most = static_cast<rlim_t>(open_descriptors()) + static_cast<rlim_t>(more);
        const rlimit limit{most, most};
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
      }
      // Another process makes the id: where they meet is not what lacks descriptors.
      const tuttiUniqueId id = seat.board().share_id(0, seat.rank() == 1);
      const auto begun = Clock::now();
      tuttiComm_t comm = nullptr;
      const auto result = tuttiCommInitRank(&comm, ranks, id, seat.rank());
      EXPECT_LT(std::chrono::duration<double>(Clock::now() - begun).count(), told_limit_s * patience());
      if (result == tuttiSuccess) {
        EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
        return;
      }
      seat.board().raise(told, 1);
      const std::string words = tuttiGetLastError(nullptr);
      EXPECT_TRUE(words.find("ulimit -n") != std::string::npos ||
                  words.find("Too many open files") != std::string::npos)
          << more << " descriptors more: " << words;
    });
    EXPECT_TRUE(workers.finish()) << more << " descriptors more";
    failed += workers.board().word(told) != 0 ? 1 : 0;
  }
  EXPECT_GT(failed, 0) << "none lacked a descriptor";
}

void leave_descriptors(int more) {
  const auto most = static_cast<rlim_t>(open_descriptors()) + static_cast<rlim_t>(more) - 1;  // but the one that counts
  const rlimit limit{most, most};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

struct Few {
  int odd;
  bool at_address;
  int more;
};

/// True: it failed, so all were told, long before the limit.
bool fails_with(const char* transport, const Few& few) {
  SCOPED_TRACE(::testing::Message() << few.more << " descriptors more for rank " << few.odd
                                    << (few.at_address ? " at an address" : " on a host"));
  Team team = team_of(transport);
  const std::string port = std::to_string(free_port());
  team.environment.insert(team.environment.end(), {"TUTTI_INIT_TIMEOUT_MS=60000", "TUTTI_NRANKS=3", "TUTTI_TUNE=off"});
  team.environment.push_back("TUTTI_JOB_ID=few-" + std::to_string(::getpid()) + "-" + port);
  if (few.at_address)
    team.environment.insert(team.environment.end(),
                            {"TUTTI_COMM_ID=127.0.0.1:" + port, "TUTTI_COMM_SECRET=correct horse battery"});
  team.environment_of = [](int rank) { return std::vector{"TUTTI_RANK=" + std::to_string(rank)}; };
  Workers workers(team, [&few](Seat& seat) {
    constexpr std::size_t count = 1'000'000;
    std::vector<float> values(count);
    if (!seat.meet()) return;
    if (seat.rank() == few.odd) leave_descriptors(few.more);
    const auto begun = Clock::now();
    tuttiComm_t comm = nullptr;
    auto result = tuttiCommInitFromEnv(&comm, nullptr);
    for (const std::size_t some : {std::size_t{1}, count})
      if (result == tuttiSuccess)
        result = tuttiAllReduce(values.data(), values.data(), some, tuttiFloat32, tuttiSum, comm, nullptr);
    const std::string words = tuttiGetLastError(comm);
    EXPECT_LT(std::chrono::duration<double>(Clock::now() - begun).count(), few_limit_s * patience()) << words;
    if (result != tuttiSuccess) {
      seat.board().raise(told, 1);
      EXPECT_NE(words.find("ulimit -n"), std::string::npos) << words;
      EXPECT_TRUE(words.find("rank " + std::to_string(few.odd)) != std::string::npos ||
                  words.find("the root (") != std::string::npos || seat.rank() == few.odd)
          << words;
    }
    seat.meet();
    EXPECT_TRUE(comm == nullptr || tuttiCommAbort(comm) == tuttiSuccess);
  });
  EXPECT_TRUE(workers.finish());
  return workers.board().word(told) != 0;
}

/// In a start by the environment, and in the first calls, which open more connections.
TEST_P(StartLimit, IsNotWaitedForWhereDescriptorsLack) {
  int failed = 0;
  int nth = 0;
  for (const int odd : {0, 1})
    for (const bool at_address : {false, true})
      for (int more = 2 + nth++; more < 18; more += 4)
        failed += fails_with(GetParam(), {.odd = odd, .at_address = at_address, .more = more}) ? 1 : 0;
  EXPECT_GT(failed, 3) << "none lacked a descriptor";
}
#endif

}  // namespace
}  // namespace tutti::testing
