// Sockets on which a job meets: found among others', and never believed where another user listens.
#include "init/job_sockets.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "transport/abstract_socket.h"

namespace tutti {
namespace {

const std::string job = "tutti-test-" + std::to_string(::getpid());

TEST(JobSockets, AreFoundByAll) {
  auto listener = listen_for_job(job);
  ASSERT_TRUE(listener);
  const auto names = listeners_for_job(job);
  ASSERT_TRUE(names);
  ASSERT_EQ(names->size(), 1u);
  const JobCall call = *call_job(names->front());
  EXPECT_EQ(call.outcome, JobCall::Outcome::connected);
  EXPECT_EQ(call.pid, ::getpid());
  EXPECT_TRUE(is_this_user(other_end(call.fd)));
  *listener = UniqueSocket();
  EXPECT_TRUE(listeners_for_job(job)->empty());
  EXPECT_EQ(call_job(names->front())->outcome, JobCall::Outcome::no_answer);
}

TEST(JobSockets, OnlyWhatListensAndHasTheWholeName) {
  const std::string head = "0000000000000000: 00000002 00000000 ";
  const std::string table =
      "Num       RefCount Protocol Flags    Type St Inode Path\n" + head +
      "00010000 0005 01 12345 @a-0123456789abcdef\n" + head + "00000000 0005 03 12346 @a-1123456789abcdef\n" + head +
      "00010000 0005 01 12347 @a-short\n" + head + "00010000 0005 01 12348 @b-0123456789abcdef\n" + head +
      "00010000 0005 01 12349 /run/a-0123456789abcdef\n" + "@a-\n\n @a-0123456789abcdef";
  EXPECT_EQ(listeners_in(table, "a"), std::vector<std::string>{"a-0123456789abcdef"});
  EXPECT_TRUE(listeners_in("", "a").empty());
}

/// Another user knows the job's name, and is there first.
TEST(JobSockets, OtherUsersAreKnown) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may be another user";
  int there[2];
  int done[2];
  ASSERT_EQ(::pipe(there), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(done[1]);
    bool fine = ::setuid(65534) == 0;
    const auto listener = listen_for_job(job);
    fine = fine && listener;
    char byte = fine ? 'y' : 'n';
    fine = ::write(there[1], &byte, 1) == 1 && ::read(done[0], &byte, 1) == 0 && fine;
    ::_exit(fine ? 0 : 1);
  }
  ::close(done[0]);
  char byte = 0;
  EXPECT_EQ(::read(there[0], &byte, 1), 1);
  auto own = listen_for_job(job);
  ASSERT_TRUE(own);
  const auto names = listeners_for_job(job);
  ASSERT_TRUE(names);
  EXPECT_EQ(names->size(), 2u);
  const auto count = [&](JobCall::Outcome outcome) {
    return std::ranges::count_if(*names, [&](const auto& name) { return call_job(name)->outcome == outcome; });
  };
  EXPECT_EQ(count(JobCall::Outcome::other_user), 1);
  EXPECT_EQ(count(JobCall::Outcome::connected), 1);
  for (const int end : {there[0], there[1], done[1]}) ::close(end);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tutti
