// Ranks in PID, IPC and user namespaces of their own that share one network namespace, as containers of a pod do: right
// results, and a rank that dies or stops is named.
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "support/call.h"
#include "support/launch_ranks.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double told_limit_s = 0.5;
constexpr int ranks = 3;

enum Word : std::size_t { under_way, told };  // told: and a word per rank

constexpr unsigned long pod = CLONE_NEWPID | CLONE_NEWNS;

struct Pod {
  const char* name;
  unsigned long namespaces;
  bool users;
  const char* transport;
};

Team team_of(const Pod& of) {
  return {.ranks = ranks,
          .environment = {std::string("TUTTI_TRANSPORT=") + of.transport, "TUTTI_DEBUG=NONE", "TUTTI_SILENCE_MS=2000"},
          .namespaces = of.namespaces,
          .users = of.users};
}

class Pods : public ::testing::TestWithParam<Pod> {
 protected:
  void SetUp() override {
    if (GetParam().users && ::geteuid() != 0) GTEST_SKIP() << "root alone gives ranks other users";
    const pid_t child =
        static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD | GetParam().namespaces, nullptr, nullptr, nullptr, nullptr));
    if (child == 0) std::_Exit(mount_own_proc(GetParam().namespaces) ? 0 : 1);
    if (child < 0) GTEST_SKIP() << "no namespaces for this test: " << std::strerror(errno);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (status != 0) GTEST_SKIP() << "no /proc for a PID namespace: in a chroot, / is no mount point";
  }
};

TEST_P(Pods, CollectivesAndMessagesAreRight) {
  launch_ranks(team_of(GetParam()), [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    std::uint64_t seed = 0;
    for (int kind = 0; kind < kind_count; ++kind)
      for (const std::size_t count : {3u, 2'000u, 300'000u})
        for (const Mix memory : {Mix::mapped, Mix::heap})
          EXPECT_EQ(run_call({.kind = static_cast<Kind>(kind), .count = count, .memory = memory, .seed = ++seed},
                             seat.here(), ranks, {comm}),
                    "");
    // A ring of messages, small and large.
    for (const std::size_t count : {5u, 200'000u}) {
      const std::vector<int> out(count, seat.rank());
      std::vector<int> in(count, -1);
      const int left = (seat.rank() + ranks - 1) % ranks;
      ASSERT_TRUE(ok(tuttiGroupStart()));
      EXPECT_TRUE(ok(tuttiSend(out.data(), count, tuttiInt32, (seat.rank() + 1) % ranks, comm, nullptr)));
      EXPECT_TRUE(ok(tuttiRecv(in.data(), count, tuttiInt32, left, comm, nullptr)));
      ASSERT_TRUE(ok(tuttiGroupEnd()));
      EXPECT_EQ(in, std::vector<int>(count, left));
    }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// Calls until one fails, which has to name rank `victim` and hold `why`.
void call_until_told(Seat& seat, int victim, const std::string& why) {
  const auto comm = seat.init_one();
  ASSERT_NE(comm, nullptr);
  std::vector<float> x(2'000);
  auto result = tuttiSuccess;
  for (std::uint64_t call = 1; result == tuttiSuccess; ++call) {
    result = tuttiAllReduce(x.data(), x.data(), call % 2 == 0 ? 2 : x.size(), tuttiFloat32, tuttiMax, comm, nullptr);
    if (seat.rank() == victim) seat.board().raise(under_way, call);
  }
  const std::string words = tuttiGetLastError(comm);
  seat.board().raise(told + static_cast<std::size_t>(seat.rank()), 1);
  EXPECT_EQ(result, tuttiRemoteError) << words;
  EXPECT_NE(words.find("rank " + std::to_string(victim) + "/3"), std::string::npos) << words;
  EXPECT_NE(words.find(why), std::string::npos) << words;
  EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
}

bool wait_for_survivors(Board& board, int victim) {
  for (int rank = 0; rank < ranks; ++rank)
    if (rank != victim && !board.wait_for(told + static_cast<std::size_t>(rank), 1)) return false;
  return true;
}

TEST_P(Pods, AKilledRankIsNamedWithinHalfASecond) {
  std::mt19937 random(1);
  for (int kill = 0; kill < share_of(6); ++kill) {
    const int victim = kill % ranks;
    Workers workers(team_of(GetParam()), [victim](Seat& seat) { call_until_told(seat, victim, "was killed"); });
    ASSERT_TRUE(workers.board().wait_for(under_way, 1 + random() % 100));
    workers.kill(victim);
    const auto killed = Clock::now();
    ASSERT_TRUE(wait_for_survivors(workers.board(), victim));
    EXPECT_LT(std::chrono::duration<double>(Clock::now() - killed).count(), told_limit_s * patience());
    ASSERT_TRUE(workers.finish());
  }
}

TEST_P(Pods, AStoppedRankIsNamed) {
  constexpr int victim = 1;
  Workers workers(team_of(GetParam()),
                  [](Seat& seat) { call_until_told(seat, victim, seat.rank() == victim ? "" : "stopped"); });
  ASSERT_TRUE(workers.board().wait_for(under_way, 50));
  ASSERT_EQ(::kill(workers.pid_of(victim), SIGSTOP), 0);
  ASSERT_TRUE(wait_for_survivors(workers.board(), victim));
  ASSERT_EQ(::kill(workers.pid_of(victim), SIGCONT), 0);
  EXPECT_TRUE(workers.finish());
}

/// Ranks whose memory is refused to another user: each process goes by sockets, and says so.
TEST_P(Pods, SayWhereMemoryCannotBeShared) {
  const std::string path = ::testing::TempDir() + "tutti_pods_" + std::to_string(::getpid()) + "_";
  const bool users = GetParam().users;
  Team team = team_of(GetParam());
  team.environment_of = [&](int rank) {
    return std::vector<std::string>{"TUTTI_DEBUG=INFO", "TUTTI_DEBUG_FILE=" + path + std::to_string(rank)};
  };
  launch_ranks(team, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
  for (int rank = 0; rank < ranks; ++rank) {
    std::ifstream file(path + std::to_string(rank));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(text.find("no memory is shared with rank") != std::string::npos, users) << text;
    EXPECT_EQ(text.find("WARN"), std::string::npos) << text;
    std::filesystem::remove(path + std::to_string(rank));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Pods,
                         ::testing::Values(Pod{"pid", pod, false, "auto"}, Pod{"pid_fifo", pod, false, "slots"},
                                           Pod{"pid_socket", pod, false, "socket"},
                                           Pod{"pid_ipc", pod | CLONE_NEWIPC, false, "auto"},
                                           Pod{"pid_ipc_user", pod | CLONE_NEWIPC | CLONE_NEWUSER, false, "auto"},
                                           Pod{"pid_ipc_users", pod | CLONE_NEWIPC | CLONE_NEWUSER, true, "auto"}),
                         [](const auto& param) { return std::string(param.param.name); });

#ifndef __SANITIZE_ADDRESS__  // whose search for leaks takes the numbers in /proc for those of its namespace
/// As `unshare --pid --fork` leaves it: /proc is that of another PID namespace.
INSTANTIATE_TEST_SUITE_P(ProcOfOthers, Pods,
                         ::testing::Values(Pod{"pid", CLONE_NEWPID, false, "auto"},
                                           Pod{"pid_user", CLONE_NEWPID | CLONE_NEWUSER, false, "auto"}),
                         [](const auto& param) { return std::string(param.param.name); });
#endif

}  // namespace
}  // namespace tutti::testing
