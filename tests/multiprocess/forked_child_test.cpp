// Ranks whose forked children live on, as data loaders' do, and hold no connection of theirs.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>

#include "support/forbidden_calls.h"
#include "support/launch_ranks.h"
#include "support/share.h"

namespace {

using namespace tutti::testing;
using Clock = std::chrono::steady_clock;

constexpr int ranks = 3;
constexpr double told_limit_s = 0.5;  // what reliability promises of a proven death, on cores that are free
constexpr std::size_t told = 0;       // word of rank 0, of rank 1, ...: when it was told, in ns of the steady clock
constexpr std::size_t calls = ranks;  // the same: how many calls it has made

/// What keeps the children alive: they read until its other end is closed.
class Leash {
 public:
  Leash() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~Leash() {
    ::close(ends_[0]);
    if (ends_[1] >= 0) ::close(ends_[1]);
  }
  Leash(const Leash&) = delete;
  Leash& operator=(const Leash&) = delete;

  /// In a rank.
  void let_go() { ::close(std::exchange(ends_[1], -1)); }
  void fork_child() {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child > 0) return;
    char nothing = 0;
    while (::read(ends_[0], &nothing, 1) > 0) {
    }
    ::_exit(0);
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// Calls until a call fails. One child is forked as soon as there is a communicator, another one amid the calls.
void work(Seat& seat, Leash& leash, int victim) {
  leash.let_go();
  const auto comm = seat.init_one();
  ASSERT_NE(comm, nullptr);
  leash.fork_child();
  float x = 1;
  tuttiResult_t result = tuttiSuccess;
  const auto me = static_cast<std::size_t>(seat.rank());
  for (std::uint64_t call = 1; result == tuttiSuccess; ++call) {
    result = tuttiAllReduce(&x, &x, 1, tuttiFloat32, tuttiMax, comm, nullptr);
    if (call == 3) leash.fork_child();
    seat.board().raise(calls + me, call);
  }
  const auto now = Clock::now().time_since_epoch();
  const std::string words = tuttiGetLastError(comm);
  EXPECT_EQ(result, tuttiRemoteError) << words;
  EXPECT_NE(words.find("rank " + std::to_string(victim) + "/"), std::string::npos) << words;
  seat.board().raise(told + me, static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count()));
  // Together: one that leaves early is told to nobody as the one that was lost.
  for (int rank = 0; rank < ranks; ++rank)
    EXPECT_TRUE(rank == victim || seat.board().wait_for(told + static_cast<std::size_t>(rank), 1));
  EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
}

int kills() {
  const char* const given = std::getenv("TUTTI_TEST_KILLS");
  return given == nullptr ? tutti::share_of(4) : std::atoi(given);
}

class ForkedChild : public ::testing::TestWithParam<const char*> {};

TEST_P(ForkedChild, DoesNotHideTheDeathOfItsRank) {
  std::mt19937 random(1);
  for (int kill = 0; kill < kills(); ++kill) {
    SCOPED_TRACE(::testing::Message() << "kill " << kill);
    const int victim = static_cast<int>(random() % ranks);
    Leash leash;
    Workers workers({.ranks = ranks, .environment = {"TUTTI_DEBUG=NONE", "TUTTI_TRANSPORT=socket", GetParam()}},
                    [&](Seat& seat) { work(seat, leash, victim); });
    const std::uint64_t least = 5 + random() % 50;
    for (std::size_t rank = 0; rank < ranks; ++rank) ASSERT_TRUE(workers.board().wait_for(calls + rank, least));
    workers.kill(victim);
    const double killed_ns = static_cast<double>(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == victim) continue;
      const std::size_t word = told + static_cast<std::size_t>(rank);
      ASSERT_TRUE(workers.board().wait_for(word, 1, std::chrono::seconds(30))) << "rank " << rank << " hears nothing";
      const double told_s = (static_cast<double>(workers.board().word(word).load()) - killed_ns) * 1e-9;
      EXPECT_LT(told_s, told_limit_s * patience()) << "rank " << rank;
    }
    ASSERT_TRUE(workers.finish());
  }
}

INSTANTIATE_TEST_SUITE_P(Silence, ForkedChild, ::testing::Values("TUTTI_SILENCE_MS=4000", "TUTTI_SILENCE_MS=0"),
                         [](const auto& param) { return param.index == 0 ? "limited" : "unlimited"; });

/// Where a filter forbids the kernel's mark of a fork.
TEST(ForkedChild, IsRefusedWithoutAMark) {
  launch_ranks({.ranks = 2}, [](Seat& seat) {
    if (!forbid_calls({SYS_madvise}, EPERM)) GTEST_SKIP() << "no filters of system calls here";
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      void* memory = nullptr;
      ::_exit(tuttiMemAlloc(&memory, 8) == tuttiInvalidUsage ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    float x = 1;
    EXPECT_TRUE(ok(tuttiAllReduce(&x, &x, 1, tuttiFloat32, tuttiSum, comm, nullptr)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
