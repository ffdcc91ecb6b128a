// How long another process has been stopped, as looks at it tell, which may be far apart where this process gets no
// core.
#include "process/peer_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

namespace tutti {
namespace {

constexpr std::int64_t s = 1'000'000'000;

class PeerProcessStopped : public ::testing::Test {
 protected:
  void SetUp() override {
    pid_ = ::fork();
    if (pid_ == 0) {
      for (;;) ::pause();
    }
    SeenProcess seen;
    seen.pid = pid_;
    seen.pidfd = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    process_.emplace(std::move(seen));
    if (!process_->shows_stops()) GTEST_SKIP() << "/proc shows no other process";
  }
  void TearDown() override {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  void send(int signal, int option) const {
    siginfo_t info{};
    ASSERT_EQ(::kill(pid_, signal), 0);
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &info, option), 0);
  }

  pid_t pid_ = -1;
  std::optional<PeerProcess> process_;
};

TEST_F(PeerProcessStopped, IsCountedFromTheFirstLookThatSeesIt) {
  EXPECT_EQ(process_->stopped_ns(10 * s), 0);
  send(SIGSTOP, WSTOPPED);
  EXPECT_EQ(process_->stopped_ns(10 * s + s / 10), 0) << "it may have been stopped just now";
  EXPECT_EQ(process_->stopped_ns(10 * s + s / 5), s / 10);
}

/// Each look counts for a second at most, and none is forgotten.
TEST_F(PeerProcessStopped, IsCountedThoughLooksAreFarApart) {
  send(SIGSTOP, WSTOPPED);
  EXPECT_EQ(process_->stopped_ns(10 * s), 0);
  for (int look = 1; look <= 5; ++look) EXPECT_EQ(process_->stopped_ns(10 * s + look * 3 * s), look * s);
}

TEST_F(PeerProcessStopped, BeginsAnewWhenItHasRunBetweenTwoLooks) {
  send(SIGSTOP, WSTOPPED);
  EXPECT_EQ(process_->stopped_ns(10 * s), 0);
  EXPECT_EQ(process_->stopped_ns(11 * s), s);
  send(SIGCONT, WCONTINUED);
  send(SIGSTOP, WSTOPPED);
  EXPECT_EQ(process_->stopped_ns(12 * s), 0);
  EXPECT_EQ(process_->stopped_ns(13 * s), s);
}

TEST(PeerProcesses, AreMetOnceWhileTheyAreKept) {
  PeerProcesses peers;
  int met = 0;
  const auto meet = [&met]() -> Result<SeenProcess> {
    ++met;
    return SeenProcess{};
  };
  auto first = peers.get(7, meet), again = peers.get(7, meet), other = peers.get(8, meet);
  ASSERT_TRUE(first && again && other);
  EXPECT_EQ(*first, *again);
  EXPECT_NE(*first, *other);
  EXPECT_EQ(met, 2);
  first->reset();
  again->reset();
  EXPECT_TRUE(peers.get(7, meet)) << "another process may have its number";
  EXPECT_EQ(met, 3);
  EXPECT_FALSE(peers.get(9, []() -> Result<SeenProcess> { return Error{.code = Code::remote}; }));
}

}  // namespace
}  // namespace tutti
