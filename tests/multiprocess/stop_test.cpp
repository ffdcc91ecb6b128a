// A rank that is stopped in mid-pass and goes on when the others have long given up: it hits nobody.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

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
    Workers workers(
        {.ranks = 2, .layout = Layout::processes, .environment = {"TUTTI_DEBUG=NONE", "TUTTI_TRANSPORT=mapped"}},
        run_rank);
    ASSERT_TRUE(workers.board().wait_for(under_way, 1 + random() % 4));
    for (std::uint64_t spin = random() % 20'000'000; spin > 0; --spin) asm volatile("");
    ASSERT_EQ(::kill(workers.pid_of(1), SIGSTOP), 0);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(workers.pid_of(1)), &info, WSTOPPED), 0);
    workers.board().raise(stopped, 1);
    ASSERT_TRUE(workers.board().wait_for(given_up, 1));
    ASSERT_EQ(::kill(workers.pid_of(1), SIGCONT), 0);
    ASSERT_TRUE(workers.finish()) << "round " << round;
  }
}

/// Stopped and continued, nobody giving up: it was only slow.
TEST(Stopped, RankThatWakesInTimeIsOnlySlow) {
  Workers workers({.ranks = 3, .layout = Layout::processes}, [](Seat& seat) {
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
    ASSERT_TRUE(workers.board().wait_for(under_way, at));
    const pid_t pid = workers.pid_of(1);
    ASSERT_EQ(::kill(pid, SIGSTOP), 0);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WEXITED), 0);
    // The others run into it; half a second is more than they need to fall asleep over it.
    EXPECT_FALSE(workers.board().wait_for(continued, 1, std::chrono::milliseconds(500)));
    ASSERT_EQ(::kill(pid, SIGCONT), 0);
  }
  EXPECT_TRUE(workers.finish());
}

void stop(pid_t pid) {
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WEXITED), 0);
}

/// How peers reach each other: by mapping buffers, by copying from them, through slots, through sockets.
struct Way {
  const char* name;
  const char* transport;
  Memory memory;
};
constexpr std::array ways = {Way{"mapped", "mapped", Memory::mapped}, Way{"copied", "cma", Memory::heap},
                             Way{"slots", "slots", Memory::heap}, Way{"sockets", "socket", Memory::heap}};
/// RDMA with real devices alone: a process that is stopped in the midst of a fake delivery holds up its peers.
std::vector<Way> ways_here() {
  std::vector<Way> all(ways.begin(), ways.end());
  if (RdmaFabric::by_devices()) all.push_back({"rdma", "rdma", Memory::heap});
  return all;
}
constexpr int ranks = 3;

class StoppedOn : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, StoppedOn, ::testing::ValuesIn(ways_here()),
                         [](const auto& param) { return std::string(param.param.name); });

/// Calls until one fails, then fills its buffer anew, in which nothing may change after that.
void call_until_told(Seat& seat, const Way& way, int victim) {
  constexpr std::size_t count = 1 << 18;
  const auto comm = seat.init_one();
  ASSERT_NE(comm, nullptr);
  Board& board = seat.board();
  const auto told_word = [](int rank) { return told + static_cast<std::size_t>(rank); };
  Buffer buffer(way.memory, count * sizeof(float));
  tuttiResult_t result = tuttiSuccess;
  for (std::uint64_t call = 1; result == tuttiSuccess; ++call) {
    result =
        tuttiAllReduce(buffer.data(), buffer.data(), call % 3 == 0 ? 2 : count, tuttiFloat32, tuttiMax, comm, nullptr);
    if (seat.rank() == victim) board.raise(under_way, call);
  }
  const std::string words = tuttiGetLastError(comm);
  EXPECT_EQ(result, tuttiRemoteError) << words;
  EXPECT_NE(words.find("rank " + std::to_string(victim) + "/3"), std::string::npos) << words;
  EXPECT_NE(words.find("stopped"), std::string::npos) << words;
  buffer.poison();
  board.raise(told_word(seat.rank()), 1);
  for (int rank = 0; rank < ranks; ++rank) ASSERT_TRUE(board.wait_for(told_word(rank), 1));
  EXPECT_TRUE(buffer.poisoned(0, count * sizeof(float))) << "a late store";
  EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
}

/// `silence_ms`: TUTTI_SILENCE_MS; `limit_s`: until all survivors have to be told.
void stop_one(const Way& way, int victim, std::uint64_t calls, int silence_ms, double limit_s) {
  using Clock = std::chrono::steady_clock;
  Workers workers({.ranks = ranks,
                   .environment = {"TUTTI_DEBUG=NONE", std::string("TUTTI_TRANSPORT=") + way.transport,
                                   "TUTTI_SILENCE_MS=" + std::to_string(silence_ms)}},
                  [&](Seat& seat) { call_until_told(seat, way, victim); });
  Board& board = workers.board();
  ASSERT_TRUE(board.wait_for(under_way, calls));
  stop(workers.pid_of(victim));
  const auto start = Clock::now();
  for (int rank = 0; rank < ranks; ++rank)
    ASSERT_TRUE(rank == victim || board.wait_for(told + static_cast<std::size_t>(rank), 1));
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - start).count(), limit_s * patience());
  ASSERT_EQ(::kill(workers.pid_of(victim), SIGCONT), 0);
  ASSERT_TRUE(workers.finish());
}

/// Every survivor is told by name, and what the stopped rank does later hits nobody.
TEST_P(StoppedOn, IsToldToAllByName) {
  std::mt19937_64 random(2);
  for (int victim = 0; victim < ranks; ++victim) {
    stop_one(GetParam(), victim, 10 + random() % 50, 1000, 2);
    if (HasFatalFailure()) return;
  }
}

/// Who waits for a message with a tag is in no collective call.
TEST_P(StoppedOn, IsToldToWhoWaitsForItsMessage) {
  const Way way = GetParam();
  Workers workers(
      {.ranks = 2,
       .environment = {"TUTTI_DEBUG=NONE", std::string("TUTTI_TRANSPORT=") + way.transport, "TUTTI_SILENCE_MS=1000"}},
      [](Seat& seat) {
        const auto comm = seat.init_one();
        ASSERT_NE(comm, nullptr);
        tuttiRequest_t request = nullptr;
        char byte = 0;
        tuttiResult_t result = tuttiIrecv(&byte, 1, tuttiUint8, 1 - seat.rank(), 7, comm, &request);
        ASSERT_TRUE(ok(result));
        if (seat.rank() == 1) seat.board().raise(under_way, 1);
        result = tuttiWait(&request, nullptr);
        EXPECT_EQ(result, tuttiRemoteError);
        if (seat.rank() == 0) seat.board().raise(told, 1);
        EXPECT_TRUE(ok(tuttiCommAbort(comm)));
      });
  ASSERT_TRUE(workers.board().wait_for(under_way, 1));
  // Ranks that have given no sign of life yet may still be starting.
  EXPECT_FALSE(workers.board().wait_for(continued, 1, std::chrono::milliseconds(300)));
  stop(workers.pid_of(1));
  EXPECT_TRUE(workers.board().wait_for(told, 1, std::chrono::milliseconds(static_cast<int>(3'000 * patience()))));
  ASSERT_EQ(::kill(workers.pid_of(1), SIGCONT), 0);
  ASSERT_TRUE(workers.finish());
}

TEST_P(StoppedOn, NightlyFiftyTimesWithinFiveSeconds) {
  std::mt19937_64 random(3);
  for (int time = 0; time < 50; ++time) {
    stop_one(GetParam(), time % ranks, 1 + random() % 200, 4000, 5);
    if (HasFatalFailure()) return;
  }
}

/// Continued before the limit: it was only slow.
TEST_P(StoppedOn, InTimeContinuedItIsOnlySlow) {
  const Way way = GetParam();
  Workers workers({.ranks = ranks, .environment = {std::string("TUTTI_TRANSPORT=") + way.transport}}, [&](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    for (std::uint64_t call = 1; call <= 200; ++call) {
      const Call one{.count = call % 2 == 0 ? 200'000u : 100u,
                     .memory = way.memory == Memory::mapped ? Mix::mapped : Mix::heap,
                     .seed = call};
      ASSERT_EQ(run_call(one, seat.here(), ranks, {comm}), "");
      if (seat.rank() == 1) seat.board().raise(under_way, call);
    }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
  ASSERT_TRUE(workers.board().wait_for(under_way, 20));
  stop(workers.pid_of(1));
  EXPECT_FALSE(workers.board().wait_for(continued, 1, std::chrono::seconds(1)));
  ASSERT_EQ(::kill(workers.pid_of(1), SIGCONT), 0);
  EXPECT_TRUE(workers.finish());
}

/// It is only slow as long as it runs, though it has no core for far longer than the limit.
TEST(Stopped, ARankWithoutACoreIsNotCalledStopped) {
  constexpr std::uint64_t calls = 100;
  Workers workers({.ranks = ranks, .environment = {"TUTTI_SILENCE_MS=300"}}, [](Seat& seat) {
    if (seat.rank() == 1) {
      const sched_param idle{};
      EXPECT_EQ(::sched_setscheduler(0, SCHED_IDLE, &idle), 0);
    }
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    float x = 1;
    // Keeps all cores busy.
    std::vector<std::thread> load;
    std::atomic<bool> over = false;
    for (unsigned core = 0; seat.rank() == 0 && core < std::thread::hardware_concurrency(); ++core)
      load.emplace_back([&over] {
        while (!over.load(std::memory_order_relaxed)) {
        }
      });
    for (std::uint64_t call = 1; call <= calls; ++call)
      ASSERT_TRUE(ok(tuttiAllReduce(&x, &x, 1, tuttiFloat32, tuttiMax, comm, nullptr)));
    over = true;
    for (auto& thread : load) thread.join();
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
  EXPECT_TRUE(workers.finish());
}

}  // namespace
}  // namespace tutti::testing
