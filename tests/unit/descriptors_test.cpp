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

}  // namespace
}  // namespace tutti
