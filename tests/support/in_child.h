// Runs part of a test in a child process, which may close and replace its descriptors, limits and user.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

#include <gtest/gtest.h>

namespace tutti {

/// Failures in the child fail the test, and are printed as long as the child has its stdout.
inline void in_child(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    ::alarm(100);  // against hangs alone
    body();
    std::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_FALSE(WIFSIGNALED(status)) << "the child died of signal " << WTERMSIG(status);
  EXPECT_TRUE(!WIFEXITED(status) || WEXITSTATUS(status) == 0) << "the child has failed";
}

/// Closes those of 0, 1 and 2 whose bits are set.
inline void close_stdio(int mask) {
  for (int fd = 0; fd < 3; ++fd)
    if ((mask >> fd & 1) != 0) ::close(fd);
}

}  // namespace tutti
