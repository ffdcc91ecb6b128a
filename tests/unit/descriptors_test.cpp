// No descriptor gets the number of a standard stream, and no write that nobody reads ends the process.
#include "base/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <vector>

#include "support/folder.h"
#include "support/in_child.h"

namespace tutti {
namespace {

int open_null() {
  return ::open("/dev/null", O_RDWR | O_CLOEXEC);
}

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

/// The bits of those that are closed.
int closed_stdio() {
  int mask = 0;
  for (int fd = 0; fd < 3; ++fd) mask |= is_open(fd) ? 0 : 1 << fd;
  return mask;
}

class Closed : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Stdio, Closed, testing::Range(0, 8));

TEST_P(Closed, NumbersOfStandardStreamsAreNotUsed) {
  in_child([] {
    close_stdio(GetParam());
    for (int i = 0; i < 5; ++i) {
      errno = ERANGE;
      const int fd = i % 2 == 0 ? above_stdio(open_null()) : above_stdio(open_null);
      EXPECT_GE(fd, 3);
      EXPECT_EQ(errno, ERANGE);
      EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
      EXPECT_EQ(closed_stdio(), GetParam());
    }
  });
}

TEST_P(Closed, NumbersOfStandardStreamsAreNotUsedForAMoment) {
  in_child([] {
    close_stdio(GetParam());
    int made = -1;
    const int fd = above_stdio([&] { return made = open_null(); });
    EXPECT_GE(fd, 3);
    EXPECT_EQ(made, fd);
    EXPECT_EQ(closed_stdio(), GetParam());
  });
}

TEST_P(Closed, LibrariesFindThemOpenWhileTheyAreHeld) {
  in_child([] {
    close_stdio(GetParam());
    {
      const HeldStdio held;
      EXPECT_EQ(closed_stdio(), 0);
      EXPECT_GE(open_null(), 3);
    }
    EXPECT_EQ(closed_stdio(), GetParam());
  });
}

TEST_P(Closed, TheLastHolderLetsGo) {
  in_child([] {
    close_stdio(GetParam());
    auto first = std::make_unique<HeldStdio>();
    const auto second = std::make_unique<HeldStdio>();
    first.reset();
    EXPECT_EQ(closed_stdio(), 0);
    const int before = ::fcntl(2, F_GETFD);
    { const HeldStdio third; }
    EXPECT_EQ(::fcntl(2, F_GETFD), before);
  });
}

TEST(HeldStdio, LeavesWhatTheProgramHasPutThere) {
  in_child([] {
    close_stdio(7);
    const int own = above_stdio(::open("/proc/self/stat", O_RDONLY));
    struct stat wanted {
    }, found{};
    ASSERT_EQ(::fstat(own, &wanted), 0);
    {
      const HeldStdio held;
      ::dup2(own, 2);
      ::close(1);
    }
    EXPECT_EQ(closed_stdio(), 3);
    EXPECT_EQ(::fstat(2, &found), 0);
    EXPECT_EQ(found.st_ino, wanted.st_ino);
  });
}

TEST(AboveStdio, PassesOnWhatNeedsNoOtherNumber) {
  errno = ENFILE;
  EXPECT_EQ(above_stdio(-1), -1);
  EXPECT_EQ(errno, ENFILE);
  const int fd = above_stdio(open_null());
  EXPECT_EQ(above_stdio(fd), fd);
  ::close(fd);
}

TEST(AboveStdio, SaysThatNoOtherNumberIsFree) {
  in_child([] {
    rlimit few{};
    ::getrlimit(RLIMIT_NOFILE, &few);
    few.rlim_cur = 16;
    ::setrlimit(RLIMIT_NOFILE, &few);
    while (open_null() >= 0) {
    }
    ::close(0);
    EXPECT_EQ(above_stdio(open_null()), -1);
    EXPECT_EQ(errno, EMFILE);
    EXPECT_EQ(closed_stdio(), 1);
  });
}

bool is_pending(int signal) {
  sigset_t set;
  ::sigpending(&set);
  return ::sigismember(&set, signal) != 0;
}

bool is_blocked(int signal) {
  sigset_t set;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &set);
  return ::sigismember(&set, signal) != 0;
}

void block(int signal) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

/// A write to a pipe without a reader.
void write_in_vain() {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const WriteSignals signals;
  EXPECT_EQ(::write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  signals.failed(errno);
  EXPECT_EQ(errno, EPIPE);
}

TEST(WriteSignals, APipeWithoutAReaderOnlyFails) {
  in_child([] {
    for (const auto disposition : {SIG_DFL, SIG_IGN}) {
      std::signal(SIGPIPE, disposition);
      write_in_vain();
      EXPECT_FALSE(is_pending(SIGPIPE));
      EXPECT_FALSE(is_blocked(SIGPIPE));
      EXPECT_EQ(std::signal(SIGPIPE, SIG_DFL), disposition);
    }
  });
}

TEST(WriteSignals, WhatWasPendingStaysPending) {
  in_child([] {
    block(SIGPIPE);
    write_in_vain();
    EXPECT_FALSE(is_pending(SIGPIPE));
    ::raise(SIGPIPE);
    write_in_vain();
    EXPECT_TRUE(is_pending(SIGPIPE));
    EXPECT_TRUE(is_blocked(SIGPIPE));
  });
}

TEST(WriteSignals, AFileThatMayNotGrowOnlyFails) {
  const Folder folder;
  in_child([&folder] {
    const rlimit none{};
    ::setrlimit(RLIMIT_FSIZE, &none);
    const int fd = ::open((folder / "file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    {
      const WriteSignals signals;
      EXPECT_EQ(::write(fd, "x", 1), -1);
      EXPECT_EQ(errno, EFBIG);
      signals.failed(errno);
    }
    EXPECT_FALSE(is_pending(SIGXFSZ));
    EXPECT_FALSE(is_blocked(SIGXFSZ));
  });
}

}  // namespace
}  // namespace tutti
