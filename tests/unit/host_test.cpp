// Who we are, and who looks at us.
#include "base/host.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "support/forbidden_calls.h"

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

TEST(Host, TakesAllCpusWhereTheSystemDoesNotSayWhich) {
  const cpu_set_t told = own_cpus();
  cpu_set_t asked;
  ASSERT_EQ(::sched_getaffinity(0, sizeof asked, &asked), 0);
  EXPECT_TRUE(CPU_EQUAL(&told, &asked));
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!testing::forbid_calls({SYS_sched_getaffinity}, EPERM)) ::_exit(77);
    const cpu_set_t all = own_cpus();
    ::_exit(CPU_COUNT(&all) >= CPU_COUNT(&told) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no filters of system calls here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tutti
