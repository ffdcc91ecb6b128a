// Processes that end without a word, and what the others make of it.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/buffer.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double heard_limit_s = 2;

enum Word : std::size_t { calls, waits, killed };

class Exit : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transports, Exit, ::testing::Values("auto", "socket", "rdma"),
                         [](const auto& param) { return std::string(param.param); });

/// Children of Python's multiprocessing end so. Nobody is in a call, so nobody is harmed, and nobody is warned.
TEST_P(Exit, WithNoCallUnderWayAlarmsNobody) {
  const std::string path = ::testing::TempDir() + "tutti_exit_" + std::to_string(::getpid()) + "_";
  Team team{.ranks = 3, .environment = {std::string("TUTTI_TRANSPORT=") + GetParam(), "TUTTI_DEBUG=WARN"}};
  team.environment_of = [&](int rank) {
    return std::vector<std::string>{"TUTTI_DEBUG_FILE=" + path + std::to_string(rank)};
  };
  launch_ranks(team, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    float x = 1;
    ASSERT_TRUE(ok(tuttiAllReduce(&x, &x, 1, tuttiFloat32, tuttiSum, comm, nullptr)));
    ASSERT_TRUE(seat.meet());
    if (seat.rank() != 0) ::_exit(0);
    // It hears of it, and is told when it asks.
    const auto begun = Clock::now();
    tuttiResult_t heard = tuttiSuccess;
    while (heard == tuttiSuccess && !seat.board().over()) ASSERT_TRUE(ok(tuttiCommGetAsyncError(comm, &heard)));
    EXPECT_EQ(heard, tuttiRemoteError);
    EXPECT_LT(std::chrono::duration<double>(Clock::now() - begun).count(), heard_limit_s * patience());
    EXPECT_TRUE(fails(tuttiBarrier(comm, nullptr), tuttiRemoteError, "lost", comm));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
  for (int rank = 0; rank < 3; ++rank) {
    std::ifstream file(path + std::to_string(rank));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(text, "");
    std::filesystem::remove(path + std::to_string(rank));
  }
}

/// Its service thread proves connections with what the system takes away at the end of a process.
TEST(Exits, AProcessThatEndsWhileOthersProveThemselvesDoesNotCrash) {
  constexpr int many = 9;  // of which one never comes, so that the others do not get through
  for (int round = 0; round < 20; ++round)
    ASSERT_TRUE(launch_ranks({.ranks = many - 1, .environment = {"TUTTI_DEBUG=NONE", "TUTTI_INIT_TIMEOUT_MS=200"}},
                             [](Seat& seat) {
                               const tuttiUniqueId id = seat.next_id();
                               ASSERT_TRUE(seat.meet());
                               if (seat.rank() == 0) return;  // and exits
                               tuttiComm_t comm = nullptr;
                               EXPECT_NE(tuttiCommInitRank(&comm, many, id, seat.rank()), tuttiSuccess);
                             }));
}

/// This thread keeps the core, so that the one that watches peers does not get it.
void have_the_service_thread_late() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  bool found = false;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const pid_t thread = std::stoi(task.path().filename());
    EXPECT_EQ(::sched_setaffinity(thread, sizeof one, &one), 0);
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    if (name != "tutti-service") continue;
    const sched_param none{};
    EXPECT_EQ(::sched_setscheduler(thread, SCHED_IDLE, &none), 0);
    found = true;
  }
  EXPECT_TRUE(found);
}

/// Whoever asks for its buffer finds nobody there to ask, and says who died, not that.
TEST(KilledRank, IsNamedByWhoeverIsAboutToMapItsBuffer) {
  constexpr std::size_t bytes = 1 << 20;
  for (int round = 0; round < 5; ++round) {
    Workers workers({.ranks = 2, .environment = {"TUTTI_TRANSPORT=mapped", "TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
      Board& board = seat.board();
      const auto comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      Buffer buffer(Memory::mapped, bytes);
      if (seat.rank() == 1) {
        ASSERT_TRUE(board.wait_for(calls, 1));
        have_the_service_thread_late();
        board.raise(waits, 1);
        while (board.word(killed).load() == 0 && !board.over()) {
        }
      } else {
        board.raise(calls, 1);
      }
      const auto result =
          tuttiAllReduce(buffer.data(), buffer.data(), bytes / 4, tuttiFloat32, tuttiSum, comm, nullptr);
      const std::string words = tuttiGetLastError(comm);
      EXPECT_EQ(result, tuttiRemoteError) << words;
      EXPECT_NE(words.find("rank 0/2"), std::string::npos) << words;
      EXPECT_NE(words.find("was killed"), std::string::npos) << words;
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    });
    ASSERT_TRUE(workers.board().wait_for(waits, 1));
    workers.kill(0);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(workers.pid_of(0)), &info, WEXITED | WNOWAIT), 0);
    workers.board().raise(killed, 1);
    ASSERT_TRUE(workers.finish()) << "round " << round;
  }
}

}  // namespace
}  // namespace tutti::testing
