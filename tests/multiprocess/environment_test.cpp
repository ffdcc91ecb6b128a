// Ranks started by a launcher find each other by what is in their environment, or say what is missing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "support/folder.h"
#include "support/free_port.h"

namespace {

using tutti::testing::free_port;

using Environment = std::vector<std::string>;

struct Ended {
  int status;
  std::string said;
};

/// One env_rank under way.
class Started {
 public:
  Started(const Environment& environment, int rank, int ranks) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    said_ = ends[0];
    std::string rank_text = std::to_string(rank);
    std::string ranks_text = std::to_string(ranks);
    std::vector<char*> arguments = {program_.data(), rank_text.data(), ranks_text.data(), nullptr};
    std::vector<char*> variables;
    for (const auto& entry : environment) variables.push_back(const_cast<char*>(entry.c_str()));
    variables.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::alarm(100);
      ::execve(program_.c_str(), arguments.data(), variables.data());
      ::_exit(127);
    }
    ::close(ends[1]);
  }
  ~Started() { ::close(said_); }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  Ended wait() {
    Ended ended{.status = -1, .said = {}};
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(said_, buffer, sizeof buffer)) > 0;)
      ended.said.append(buffer, static_cast<std::size_t>(n));
    int status = 0;
    ::waitpid(pid_, &status, 0);
    ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return ended;
  }

 private:
  std::string program_ = TUTTI_TEST_ENV_RANK;
  pid_t pid_ = -1;
  int said_ = -1;
};

/// Runs one env_rank per environment. Every one gives up by itself, after 20 s at most, or is ended after 100.
std::vector<Ended> run(const std::vector<Environment>& environments) {
  const int ranks = static_cast<int>(environments.size());
  std::vector<std::unique_ptr<Started>> started;
  for (int rank = 0; rank < ranks; ++rank) {
    Environment environment = environments[static_cast<std::size_t>(rank)];
    environment.insert(environment.begin(), {"TUTTI_INIT_TIMEOUT_MS=20000", "TUTTI_DEBUG=NONE", "TUTTI_TUNE=off"});
    for (const char* kept : {"ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"})
      if (const char* const value = std::getenv(kept)) environment.push_back(std::string(kept) + "=" + value);
    started.push_back(std::make_unique<Started>(environment, rank, ranks));
  }
  std::vector<Ended> ended;
  for (auto& one : started) ended.push_back(one->wait());
  return ended;
}

void expect_works(const std::vector<Environment>& environments) {
  const auto ended = run(environments);
  for (std::size_t rank = 0; rank < ended.size(); ++rank)
    EXPECT_EQ(ended[rank].status, 0) << "rank " << rank << " said: " << ended[rank].said;
}

/// What rank 0 of one says.
void expect_refused(const Environment& environment, const std::string& words) {
  const auto ended = run({environment});
  EXPECT_EQ(ended[0].status, 1);
  EXPECT_NE(ended[0].said.find(words), std::string::npos) << ended[0].said;
}

std::string number(int value) {
  return std::to_string(value);
}

/// Nobody else's job has this name.
std::string job_name() {
  return "test-" + number(::getpid()) + "-" + number(free_port(2));
}

TEST(Environment, OwnVariablesWithAddressAndSecret) {
  const std::string at = "TUTTI_COMM_ID=127.0.0.1:" + number(free_port(2));
  std::vector<Environment> all;
  for (int rank = 0; rank < 3; ++rank)
    all.push_back({"TUTTI_RANK=" + number(rank), "TUTTI_NRANKS=3", at, "TUTTI_COMM_SECRET=correct horse battery"});
  expect_works(all);
}

/// Any name that the resolver knows will do; this one it knows everywhere.
TEST(Environment, HostsMayBeNames) {
  const std::string at = "TUTTI_COMM_ID=127.1:" + number(free_port(2));
  const std::string secret = "TUTTI_COMM_SECRET=correct horse battery";
  expect_works({{"TUTTI_RANK=0", "TUTTI_NRANKS=2", at, secret}, {"TUTTI_RANK=1", "TUTTI_NRANKS=2", at, secret}});
}

TEST(Environment, OwnVariablesWithAddressAlone) {
  const std::string at = "TUTTI_COMM_ID=localhost:" + number(free_port(2));
  expect_works({{"TUTTI_RANK=0", "TUTTI_NRANKS=2", at}, {"TUTTI_RANK=1", "TUTTI_NRANKS=2", at}});
}

TEST(Environment, SecretFromAFile) {
  const std::string path = testing::TempDir() + "tutti-secret-" + number(::getpid());
  std::ofstream(path) << "a secret that nobody guesses\n";
  const std::string at = "TUTTI_COMM_ID=127.0.0.1:" + number(free_port(2));
  expect_works({{"TUTTI_RANK=0", "TUTTI_NRANKS=2", at, "TUTTI_COMM_SECRET_FILE=" + path},
                {"TUTTI_RANK=1", "TUTTI_NRANKS=2", at, "TUTTI_COMM_SECRET=a secret that nobody guesses"}});
  ::unlink(path.c_str());
}

TEST(Environment, Torchrun) {
  const std::string port = "MASTER_PORT=" + number(free_port(2));
  std::vector<Environment> all;
  for (int rank = 0; rank < 4; ++rank)
    all.push_back({"RANK=" + number(rank), "WORLD_SIZE=4", "LOCAL_RANK=" + number(rank), "MASTER_ADDR=127.0.0.1", port,
                   "TORCHELASTIC_RUN_ID=none"});
  expect_works(all);
}

TEST(Environment, OpenMpi) {
  const std::string job = "PMIX_NAMESPACE=" + job_name();
  std::vector<Environment> all;
  for (int rank = 0; rank < 3; ++rank)
    all.push_back({"OMPI_COMM_WORLD_RANK=" + number(rank), "OMPI_COMM_WORLD_SIZE=3", job});
  expect_works(all);
}

TEST(Environment, OwnVariablesComeBeforeALaunchers) {
  const std::string job = "PMIX_NAMESPACE=" + job_name();
  expect_works({{"TUTTI_RANK=0", "TUTTI_NRANKS=2", "OMPI_COMM_WORLD_RANK=7", "OMPI_COMM_WORLD_SIZE=9", job},
                {"TUTTI_RANK=1", "TUTTI_NRANKS=2", "RANK=0", "WORLD_SIZE=5", job}});
}

/// Two jobs at once, alike in all but their name.
TEST(Environment, JobsSideBySideHaveNames) {
  std::vector<std::unique_ptr<Started>> started;
  for (const int rank : {0, 1})
    for (const char* job : {"TUTTI_JOB_ID=red", "TUTTI_JOB_ID=blue"})
      started.push_back(std::make_unique<Started>(
          Environment{"TUTTI_INIT_TIMEOUT_MS=20000", "TUTTI_DEBUG=NONE", "TUTTI_TUNE=off", "TUTTI_NRANKS=2",
                      "TUTTI_RANK=" + number(rank), job + number(::getpid())},
          rank, 2));
  for (auto& one : started) {
    const Ended ended = one->wait();
    EXPECT_EQ(ended.status, 0) << ended.said;
  }
}

TEST(Environment, RankAndNumberOfRanksAlone) {
  expect_works({{"TUTTI_RANK=0", "TUTTI_NRANKS=2"}, {"TUTTI_RANK=1", "TUTTI_NRANKS=2"}});
}

TEST(Environment, MistakesInTheSettingsOfRank0AreToldToTheOthers) {
  const std::string job = "TUTTI_JOB_ID=" + job_name();
  const auto ended = run({{"TUTTI_RANK=0", "TUTTI_NRANKS=3", "TUTTI_ALGO=no such", job},
                          {"TUTTI_RANK=1", "TUTTI_NRANKS=3", job},
                          {"TUTTI_RANK=2", "TUTTI_NRANKS=3", job}});
  for (const Ended& one : ended) {
    EXPECT_EQ(one.status, 1);
    EXPECT_NE(one.said.find("TUTTI_ALGO"), std::string::npos) << one.said;
  }
}

/// One of them may be first, and then waits in vain.
TEST(Environment, JobsThatAreAlikeAreToldOfNames) {
  const Environment same = {"TUTTI_RANK=0", "TUTTI_NRANKS=2", "TUTTI_INIT_TIMEOUT_MS=1500"};
  const auto ended = run({same, same});
  EXPECT_EQ(ended[0].status, 1);
  EXPECT_EQ(ended[1].status, 1);
  EXPECT_NE((ended[0].said + ended[1].said).find("TUTTI_JOB_ID"), std::string::npos) << ended[0].said << ended[1].said;
}

/// Runs a script in which $P is a program that starts as a rank.
Ended script(const std::string& text) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::setenv("P", TUTTI_TEST_ENV_RANK, 1);
    ::setenv("TUTTI_NRANKS", "2", 1);
    ::setenv("TUTTI_TUNE", "off", 1);
    ::setenv("TUTTI_INIT_TIMEOUT_MS", "20000", 1);
    ::setenv("TUTTI_DEBUG", "NONE", 1);
    ::execl("/bin/sh", "sh", "-c", text.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  Ended ended{.status = -1, .said = {}};
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    ended.said.append(buffer, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

/// Their parents are two, each with nothing but its rank, and of one parent.
TEST(Environment, RanksMayBeWrapped) {
  const auto ended =
      script("TUTTI_RANK=0 timeout 60 $P 0 2 & first=$!; TUTTI_RANK=1 timeout 60 $P 1 2; s=$?; wait $first && exit $s");
  EXPECT_EQ(ended.status, 0) << ended.said;
}

TEST(Environment, RanksOfDifferentParentsAreToldOfNames) {
  const auto ended = script(
      "(TUTTI_RANK=0 TUTTI_INIT_TIMEOUT_MS=5000 $P 0 2 >/dev/null; true) & TUTTI_RANK=1 $P 1 2; s=$?; wait; exit $s");
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.said.find("another parent process"), std::string::npos) << ended.said;
  EXPECT_NE(ended.said.find("TUTTI_JOB_ID"), std::string::npos) << ended.said;
  const auto named =
      script("export TUTTI_JOB_ID=$$; (TUTTI_RANK=0 $P 0 2; true) & TUTTI_RANK=1 $P 1 2; s=$?; wait; exit $s");
  EXPECT_EQ(named.status, 0) << named.said;
}

TEST(Environment, OneRankNeedsNobody) {
  expect_works({{"TUTTI_RANK=0", "TUTTI_NRANKS=1", "PMIX_NAMESPACE=" + job_name()}});
}

/// What is no file neither holds a rank up nor ends it.
TEST(Environment, WhatIsNoFileIsRefused) {
  const tutti::Folder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string variable : {"TUTTI_CONF_FILE", "TUTTI_COMM_SECRET_FILE"})
    for (const std::string& path : {folder.path(), pipe, std::string("/dev/zero")})
      expect_refused({"TUTTI_RANK=0", "TUTTI_NRANKS=2", variable + "=" + path}, path + ": is ");
  ASSERT_TRUE(std::filesystem::create_directory(folder / ".tutti.conf"));
  expect_refused({"TUTTI_RANK=0", "TUTTI_NRANKS=2", "HOME=" + folder.path()}, ".tutti.conf: is a directory");
}

/// One that has no reader is waited for by nobody.
TEST(Environment, ALogFileThatIsAPipeHoldsNobodyUp) {
  const tutti::Folder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_works({{"TUTTI_RANK=0", "TUTTI_NRANKS=1", "PMIX_NAMESPACE=" + job_name(), "TUTTI_DEBUG=WARN",
                 "TUTTI_DEBUG_FILE=" + pipe}});
}

TEST(Environment, MistakesAreNamed) {
  expect_refused({}, "TUTTI_RANK");
  expect_refused({"TUTTI_RANK=0"}, "TUTTI_NRANKS");
  expect_refused({"RANK=zero", "WORLD_SIZE=2"}, "RANK=\"zero\"");
  expect_refused({"RANK=5", "WORLD_SIZE=2"}, "RANK=5 is not one of the ranks 0 to 1 that WORLD_SIZE=2 gives");
  expect_refused({"TUTTI_RANK=two", "TUTTI_NRANKS=2"}, "TUTTI_RANK=two");
  expect_refused({"TUTTI_RANK=0", "TUTTI_NRANKS=2", "TUTTI_COMM_ID=here"}, "TUTTI_COMM_ID=\"here\"");
  expect_refused({"TUTTI_RANK=0", "TUTTI_NRANKS=2", "TUTTI_COMM_ID=127.0.0.1:99999"}, "99999");
  expect_refused({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=x"}, "MASTER_PORT");
  expect_refused({"TUTTI_RANK=0", "TUTTI_NRANKS=2", "TUTTI_COMM_SECRET_FILE=/nonexistent"}, "/nonexistent");
  expect_refused({"TUTTI_RANK=0", "TUTTI_NRANKS=2", "TUTTI_COMM_SECRET=something long enough"}, "TUTTI_COMM_ID");
  expect_refused({"TUTTI_RANK=0", "TUTTI_NRANKS=2", "TUTTI_COMM_ID=127.0.0.1:9", "TUTTI_COMM_SECRET=short"},
                 "TUTTI_COMM_SECRET: the secret has 5");
  expect_refused(
      {"TUTTI_RANK=0", "TUTTI_NRANKS=2", "TUTTI_COMM_ID=no..such..host:9", "TUTTI_COMM_SECRET=something long enough"},
      "no..such..host");
}

/// Rank 0 of two, and one that takes itself for one of three: what tells them how many they are differs.
TEST(Environment, RanksToldOfDifferentNumbersHearSoAtOnce) {
  const std::string name = "TUTTI_JOB_ID=" + job_name();
  for (const int rank : {1, 2}) {
    SCOPED_TRACE(rank);
    const auto begun = std::chrono::steady_clock::now();
    const auto ended =
        run({{"TUTTI_RANK=0", "TUTTI_NRANKS=2", name}, {"TUTTI_RANK=" + number(rank), "TUTTI_NRANKS=3", name}});
    for (const Ended& one : ended) {
      EXPECT_EQ(one.status, 1);
      EXPECT_NE(one.said.find("was told of"), std::string::npos) << one.said;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(15)) << "of a limit of 20 s";
  }
}

/// Neither knows which ranks are its own.
TEST(Environment, TwoRanksZeroEndEachOther) {
  const Environment zero = {"TUTTI_RANK=0", "TUTTI_NRANKS=2", "TUTTI_JOB_ID=" + job_name()};
  const auto begun = std::chrono::steady_clock::now();
  for (const Ended& one : run({zero, zero})) {
    EXPECT_EQ(one.status, 1);
    EXPECT_NE(one.said.find("rank 0 of this one was started twice"), std::string::npos) << one.said;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(15)) << "of a limit of 20 s";
}

TEST(Environment, AnotherSecretIsKeptOut) {
  const std::string at = "TUTTI_COMM_ID=127.0.0.1:" + number(free_port(2));
  const auto ended = run(
      {{"TUTTI_RANK=0", "TUTTI_NRANKS=2", at, "TUTTI_COMM_SECRET=correct horse battery", "TUTTI_INIT_TIMEOUT_MS=1500"},
       {"TUTTI_RANK=1", "TUTTI_NRANKS=2", at, "TUTTI_COMM_SECRET=incorrect horse battery",
        "TUTTI_INIT_TIMEOUT_MS=1500"}});
  EXPECT_EQ(ended[0].status, 1);
  EXPECT_NE(ended[0].said.find("wrong id"), std::string::npos) << ended[0].said;
  EXPECT_EQ(ended[1].status, 1);
  EXPECT_NE(ended[1].said, "");
}

TEST(Environment, Rank0NeverComes) {
  const auto ended =
      run({{}, {"TUTTI_RANK=1", "TUTTI_NRANKS=2", "PMIX_NAMESPACE=" + job_name(), "TUTTI_INIT_TIMEOUT_MS=500"}});
  EXPECT_EQ(ended[1].status, 1);
  EXPECT_NE(ended[1].said.find("rank 0"), std::string::npos) << ended[1].said;
}

}  // namespace
