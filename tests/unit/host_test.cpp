// Who we are, and who looks at us.
#include "base/host.h"

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tutti {
namespace {

TEST(Host, NamesTheProcess) {
  EXPECT_EQ(this_process(), "pid " + std::to_string(::getpid()) + " on " + host_name());
}

/// In a process of its own: 1 where it is said to be traced.
int traced(bool by_its_parent) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (by_its_parent && ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(77);
    ::_exit(is_traced() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Host, KnowsOfADebugger) {
  if (is_traced()) GTEST_SKIP() << "a debugger looks at this test";
  EXPECT_EQ(traced(false), 0);
  const int told = traced(true);
  if (told == 77) GTEST_SKIP() << "nobody may be traced here";
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace tutti
