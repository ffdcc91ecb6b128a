// A rank that is stopped in mid-pass and goes on when the others have long given up: it hits nobody.
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <random>
#include <thread>

#include "support/call.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

constexpr std::size_t bytes = 32 << 20;

/// Words of the board.
enum Word : std::size_t { under_way, stopped, given_up, continued, woken_up, told };  // told: and a word per rank

/// Rank 1 is stopped at some moment of endless all-reduces. Rank 0 aborts, takes its buffer back and fills it anew.
void run_rank(Seat& seat) {
  Board& board = seat.board();
  const auto comm = seat.init_one();
  ASSERT_NE(comm, nullptr);
  Buffer buffer(Memory::mapped, bytes);
  std::thread aborter;
  if (seat.rank() == 0)
    aborter = std::thread([&] {
      ASSERT_TRUE(board.wait_for(stopped, 1));
      EXPECT_TRUE(ok(tuttiCommAbort(comm)));
    });
  tuttiResult_t result = tuttiSuccess;
  for (std::uint64_t call = 1; result == tuttiSuccess; ++call) {
    result = tuttiAllReduce(buffer.data(), buffer.data(), bytes / 4, tuttiFloat32, tuttiSum, comm, nullptr);
    if (seat.rank() == 1) board.raise(under_way, call);
  }
  if (seat.rank() == 0) {
    aborter.join();
    buffer.poison();
    board.raise(given_up, 1);
  } else {
    EXPECT_EQ(result, tuttiRemoteError) << tuttiGetLastError(comm);
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    board.raise(woken_up, 1);
  }
  ASSERT_TRUE(board.wait_for(woken_up, 1));
  if (seat.rank() != 0) return;
  EXPECT_TRUE(buffer.poisoned(0, bytes)) << "a late store";
  EXPECT_TRUE(buffer.guards_intact());
}

TEST(Stopped, RankThatWakesLateHitsNobody) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 8; ++round) {
    Crew crew({.ranks = 2, .layout = Layout::processes, .environment = {"TUTTI_DEBUG=NONE", "TUTTI_TRANSPORT=window"}},
              run_rank);
    ASSERT_TRUE(crew.board().wait_for(under_way, 1 + random() % 4));
    for (std::uint64_t spin = random() % 20'000'000; spin > 0; --spin) asm volatile("");
    ASSERT_EQ(::kill(crew.pid_of(1), SIGSTOP), 0);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(crew.pid_of(1)), &info, WSTOPPED), 0);
    crew.board().raise(stopped, 1);
    ASSERT_TRUE(crew.board().wait_for(given_up, 1));
    ASSERT_EQ(::kill(crew.pid_of(1), SIGCONT), 0);
    ASSERT_TRUE(crew.finish()) << "round " << round;
  }
}

/// Stopped and continued, nobody giving up: it was only slow.
TEST(Stopped, RankThatWakesInTimeIsOnlySlow) {
  Crew crew({.ranks = 3, .layout = Layout::processes}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    Board& board = seat.board();
    for (std::uint64_t call = 1; call <= 60; ++call) {
      const Call one{.count = call % 2 == 0 ? 200'000u : 100u, .seed = call};
      ASSERT_EQ(run_call(one, seat.here(), 3, {comm}), "");
      if (seat.rank() == 1) board.raise(under_way, call);
    }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
  for (std::uint64_t at = 5; at <= 50; at += 15) {
    ASSERT_TRUE(crew.board().wait_for(under_way, at));
    const pid_t pid = crew.pid_of(1);
    ASSERT_EQ(::kill(pid, SIGSTOP), 0);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WEXITED), 0);
    // The others run into it; half a second is more than they need to fall asleep over it.
    EXPECT_FALSE(crew.board().wait_for(continued, 1, std::chrono::milliseconds(500)));
    ASSERT_EQ(::kill(pid, SIGCONT), 0);
  }
  EXPECT_TRUE(crew.finish());
}

void stop(pid_t pid) {
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WEXITED), 0);
}

/// Where processes share no memory, nothing but its silence tells. It hears of it when it goes on.
TEST(Stopped, ARankOfAnotherHostIsToldToAllAndHearsOfIt) {
  constexpr double told_limit_s = 5;
  using Clock = std::chrono::steady_clock;
  Crew crew({.ranks = 3, .environment = {"TUTTI_DEBUG=NONE", "TUTTI_TRANSPORT=socket"}}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    Board& board = seat.board();
    float x = 1;
    tuttiResult_t result = tuttiSuccess;
    for (std::uint64_t call = 1; result == tuttiSuccess; ++call) {
      result = tuttiAllReduce(&x, &x, 1, tuttiFloat32, tuttiMax, comm, nullptr);
      if (seat.rank() == 1) board.raise(under_way, call);
    }
    const std::string words = tuttiGetLastError(comm);
    EXPECT_EQ(result, tuttiRemoteError) << words;
    EXPECT_NE(words.find("rank 1/3"), std::string::npos) << words;
    EXPECT_NE(words.find("does not answer any more"), std::string::npos) << words;
    board.raise(told + static_cast<std::size_t>(seat.rank()), 1);
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
  Board& board = crew.board();
  ASSERT_TRUE(board.wait_for(under_way, 100));
  stop(crew.pid_of(1));
  const auto start = Clock::now();
  ASSERT_TRUE(board.wait_for(told + 0, 1) && board.wait_for(told + 2, 1));
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - start).count(), told_limit_s * patience());
  ASSERT_EQ(::kill(crew.pid_of(1), SIGCONT), 0);
  EXPECT_TRUE(crew.finish());
}

}  // namespace
}  // namespace tutti::testing
