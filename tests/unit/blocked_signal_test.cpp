// Signals that the library causes are taken back; others, and the mask, stay as they were.
#include "base/blocked_signal.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

namespace tutti {
namespace {

bool waits(int signal) {
  sigset_t waiting;
  ::sigpending(&waiting);
  return ::sigismember(&waiting, signal) == 1;
}

bool is_blocked(int signal) {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return ::sigismember(&mask, signal) == 1;
}

/// Writes to a pipe that nobody reads; the default action of its signal would end the test.
int write_to_broken_pipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  ::close(ends[0]);
  errno = 0;
  EXPECT_EQ(::write(ends[1], "x", 1), -1);
  const int why = errno;
  ::close(ends[1]);
  return why;
}

TEST(BlockedSignal, TakesBackWhatThisThreadCaused) {
  {
    const BlockedSignal guard(SIGPIPE);
    EXPECT_EQ(write_to_broken_pipe(), EPIPE);
    EXPECT_EQ(write_to_broken_pipe(), EPIPE);
    EXPECT_TRUE(waits(SIGPIPE));
  }
  EXPECT_FALSE(waits(SIGPIPE));
  EXPECT_FALSE(is_blocked(SIGPIPE));
}

TEST(BlockedSignal, TakesBackWhatBelongsToTheInnerOneInTheOuterOne) {
  {
    const BlockedSignal outer(SIGPIPE);
    EXPECT_EQ(write_to_broken_pipe(), EPIPE);
    {
      const BlockedSignal inner(SIGPIPE);
      EXPECT_EQ(write_to_broken_pipe(), EPIPE);
    }
    EXPECT_TRUE(is_blocked(SIGPIPE));
  }
  EXPECT_FALSE(waits(SIGPIPE));
}

TEST(BlockedSignal, LeavesWhatWaitedBefore) {
  sigset_t pipe, before;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
  ::raise(SIGPIPE);
  {
    const BlockedSignal guard(SIGPIPE);
    EXPECT_EQ(write_to_broken_pipe(), EPIPE);
  }
  EXPECT_TRUE(waits(SIGPIPE));
  EXPECT_TRUE(is_blocked(SIGPIPE));
  int taken = 0;
  ::sigwait(&pipe, &taken);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(BlockedSignal, KeepsErrno) {
  errno = ENOSPC;
  { const BlockedSignal guard(SIGXFSZ); }
  EXPECT_EQ(errno, ENOSPC);
}

TEST(AllSignalsBlocked, HoldsForThreadsThatStartMeanwhile) {
  bool blocked = false;
  std::thread thread;
  {
    const AllSignalsBlocked guard;
    thread = std::thread([&] { blocked = is_blocked(SIGUSR1) && is_blocked(SIGALRM) && is_blocked(SIGINT); });
  }
  thread.join();
  EXPECT_TRUE(blocked);
  EXPECT_FALSE(is_blocked(SIGUSR1));
}

}  // namespace
}  // namespace tutti
