// Log lines reach those for whom they are, and nobody else; they stop nobody, and end nothing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/log.h"
#include "support/folder.h"
#include "support/in_child.h"

namespace tutti {
namespace {

constexpr unsigned all = static_cast<unsigned>(LogTopic::all);

/// What has come so far.
std::string taken(int fd) {
  std::string text;
  std::array<char, 4096> piece;
  pollfd item{.fd = fd, .events = POLLIN, .revents = 0};
  while (::poll(&item, 1, 0) > 0) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

std::string content(int fd) {
  std::string text(1 << 16, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(::pread(fd, text.data(), text.size(), 0), 0)));
  return text;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// How many lines are said to be lost.
std::size_t lost(const std::string& text) {
  const std::string words = "WARN log: lines lost here, as nobody took them: ";
  std::size_t sum = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    sum += std::strtoul(text.c_str() + at + words.size(), nullptr, 10);
  return sum;
}

struct Ends {
  int read = -1;
  int write = -1;
};

Ends make_pipe() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {ends[0], ends[1]};
}

Ends make_sockets() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {ends[0], ends[1]};
}

/// The other end is a terminal.
Ends make_terminal() {
  Ends ends;
  ends.read = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  EXPECT_EQ(::grantpt(ends.read) + ::unlockpt(ends.read), 0);
  ends.write = ::open(::ptsname(ends.read), O_RDWR | O_NOCTTY | O_CLOEXEC);
  EXPECT_GE(ends.write, 0);
  return ends;
}

int make_file(const Folder& folder, int flags = 0) {
  return ::open((folder / "file").c_str(), O_RDWR | O_CREAT | flags, 0600);
}

void be_stderr(int fd) {
  EXPECT_EQ(::dup2(fd, STDERR_FILENO), STDERR_FILENO);
}

TEST(LineWriter, ASocketThatIsPutThereGetsNothing) {
  in_child([] {
    Log log(LogLevel::info, all, "");
    const Ends ends = make_sockets();
    be_stderr(ends.write);
    log.warn("x", "hello");
    EXPECT_EQ(taken(ends.read), "");
    be_stderr(make_pipe().write);  // and it is not held against the next
    log.warn("x", "hello");
  });
}

TEST(LineWriter, ASocketThatWasThereGetsLinesAndStopsNobody) {
  in_child([] {
    const Ends ends = make_sockets();
    be_stderr(ends.write);
    Log log(LogLevel::info, all, "", StandardError::now());
    constexpr std::size_t lines = 3000;
    for (std::size_t i = 0; i < lines; ++i) log.warn("x", "hello {}", std::string(300, '.'));
    std::string text = taken(ends.read);
    log.warn("x", "the end");
    text += taken(ends.read);
    EXPECT_GT(count(text, "x: hello"), 10u);
    EXPECT_GT(lost(text), 10u);
    EXPECT_EQ(count(text, "x: hello") + lost(text), lines);
    ::close(ends.read);
    log.warn("x", "nobody is there");
  });
}

TEST(LineWriter, WhatTheProgramRedirectsToGetsLines) {
  const Folder folder;
  in_child([&folder] {
    Log log(LogLevel::info, all, "");
    const Ends pipe = make_pipe();
    be_stderr(pipe.write);
    log.warn("x", "to a pipe");
    EXPECT_EQ(count(taken(pipe.read), "x: to a pipe\n"), 1u);
    const int file = make_file(folder);
    be_stderr(file);
    log.warn("x", "to a file");
    log.warn("x", "again");
    EXPECT_EQ(count(content(file), "x: to a file\n"), 1u);
    EXPECT_EQ(count(content(file), "x: again\n"), 1u);
    const Ends terminal = make_terminal();
    be_stderr(terminal.write);
    log.warn("x", "to a terminal");
    EXPECT_EQ(count(taken(terminal.read), "x: to a terminal\r\n"), 1u);
  });
}

TEST(LineWriter, AFileThatIsThereByAccidentGetsNothing) {
  const Folder folder;
  for (const bool begins_closed : {true, false})
    in_child([&] {
      if (begins_closed) ::close(2);
      Log log(LogLevel::info, all, "", StandardError::now());
      if (!begins_closed) ::close(2);
      log.warn("x", "nobody sees that");
      const int file = make_file(folder);
      ASSERT_EQ(file, 2);
      log.warn("x", "hello");
      EXPECT_EQ(content(file), "");
      ::close(2);
      const Ends pipe = make_pipe();
      log.warn("x", "hello");
      EXPECT_EQ(taken(pipe.read), "");
    });
}

/// Run by the next test, in a program that is started with descriptor 2 closed.
TEST(LineWriter, DISABLED_AFileOfTheProgramsOwnBeforeTheFirstCall) {
  const Folder folder;
  ASSERT_EQ(make_file(folder), 2);
  Log(LogLevel::info, all, "").warn("x", "hello");
  EXPECT_EQ(content(2), "");
  ::close(2);
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ASSERT_EQ(ends[0], 2);
  Log(LogLevel::info, all, "").warn("x", "hello");
  EXPECT_EQ(taken(ends[1]), "");
}

TEST(LineWriter, AFileThatIsThereBeforeTheFirstCallGetsNothingInAProgramThatStartedWithout) {
  in_child([] {
    ::close(2);
    ::execl("/proc/self/exe", "line_writer_test", "--gtest_filter=*AFileOfTheProgramsOwnBeforeTheFirstCall",
            "--gtest_also_run_disabled_tests", nullptr);
    FAIL() << "exec";
  });
}

TEST(LineWriter, AFileThatClosesOnExecIsNobodysStderr) {
  const Folder folder;
  for (const bool before : {true, false})
    in_child([&] {
      const auto open = [&] {
        ::close(2);
        ASSERT_EQ(make_file(folder, O_CLOEXEC), 2);
      };
      if (before) open();
      Log log(LogLevel::info, all, "");
      if (!before) open();
      log.warn("x", "hello");
      EXPECT_EQ(content(2), "");
    });
}

/// Standard error that nobody reads, in all forms: the log must stay usable, and tell later.
struct Sleeper {
  const char* name;
  Ends (*make)();
  bool own_user = true;  ///< whether the log may open it once more
  bool to_file = false;  ///< TUTTI_DEBUG_FILE instead
};

class Sleeping : public testing::TestWithParam<Sleeper> {
 protected:
  /// To be called in a child.
  void prepare(Ends& ends) {
    const Folder folder;
    if (GetParam().to_file) {
      const std::string path = folder / "fifo";
      ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
      ends.read = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
      log.emplace(LogLevel::info, all, path);
      ends.write = -1;
      return;
    }
    ends = GetParam().make();
    be_stderr(ends.write);
    ::close(ends.write);
    const uid_t user = GetParam().own_user ? ::getuid() : 65534;
    ASSERT_EQ(::setresuid(user, user, user), 0);
    log.emplace(LogLevel::info, all, "");
  }
  /// Pipes take a line or not; a terminal may take most of one, which then counts as lost.
  void expect_all(std::size_t came, const std::string& text, std::size_t lines) {
    const bool is_terminal = std::string(GetParam().name).starts_with("terminal");
    EXPECT_GE(came + lost(text), lines);
    EXPECT_LE(came + lost(text), lines + (is_terminal ? count(text, "WARN log: ") : 0));
  }
  std::optional<Log> log;
};
INSTANTIATE_TEST_SUITE_P(Readers, Sleeping,
                         testing::Values(Sleeper{"pipe", make_pipe}, Sleeper{"pipe_of_another_user", make_pipe, false},
                                         Sleeper{"terminal", make_terminal},
                                         Sleeper{"terminal_of_another_user", make_terminal, false},
                                         Sleeper{"fifo", make_pipe, true, true}),
                         [](const auto& test) { return test.param.name; });

TEST_P(Sleeping, LinesAreDroppedAndCounted) {
  if (!GetParam().own_user && ::geteuid() != 0) GTEST_SKIP() << "needs root";
  in_child([this] {
    Ends ends;
    ASSERT_NO_FATAL_FAILURE(prepare(ends));
    const int marks = ::fcntl(STDERR_FILENO, F_GETFL);
    constexpr std::size_t lines = 3000;
    for (std::size_t i = 0; i < lines; ++i) log->warn("x", "hello {}", std::string(300, '.'));
    std::string text = taken(ends.read);
    EXPECT_GT(count(text, "x: hello"), 5u);
    EXPECT_LT(count(text, "x: hello"), lines);
    log->warn("x", "the end");
    text += taken(ends.read);
    EXPECT_EQ(count(text, "x: the end"), 1u);
    expect_all(count(text, "x: hello " + std::string(300, '.')), text, lines);
    EXPECT_EQ(::fcntl(STDERR_FILENO, F_GETFL), marks);
  });
}

TEST_P(Sleeping, AReaderThatIsGoneEndsNothing) {
  if (!GetParam().own_user && ::geteuid() != 0) GTEST_SKIP() << "needs root";
  in_child([this] {
    Ends ends;
    ASSERT_NO_FATAL_FAILURE(prepare(ends));
    ::close(ends.read);
    for (int i = 0; i < 3; ++i) log->warn("x", "hello");
    sigset_t pending, blocked;
    ::sigpending(&pending);
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
    EXPECT_EQ(::sigismember(&blocked, SIGPIPE), 0);
  });
}

/// A reader at its own pace: each line has come or is counted, and none is cut.
TEST_P(Sleeping, EachLineComesOrIsCounted) {
  if (!GetParam().own_user && ::geteuid() != 0) GTEST_SKIP() << "needs root";
  in_child([this] {
    Ends ends;
    ASSERT_NO_FATAL_FAILURE(prepare(ends));
    std::string text;
    std::jthread reader([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        pollfd item{.fd = ends.read, .events = POLLIN, .revents = 0};
        ::poll(&item, 1, 10);
        text += taken(ends.read);
      }
    });
    constexpr std::size_t lines = 2000;
    for (std::size_t i = 0; i < lines; ++i) log->warn("x", "hello {}.", std::string(i, '-'));
    reader.request_stop();
    reader.join();
    text += taken(ends.read);
    log->warn("x", "the end");
    text += taken(ends.read);
    std::size_t whole = 0;
    for (std::size_t i = 0; i < lines; ++i) whole += count(text, "x: hello " + std::string(i, '-') + ".");
    expect_all(whole, text, lines);
  });
}

TEST(LineWriter, AStoppedTerminalStopsNobody) {
  in_child([] {
    const Ends ends = make_terminal();
    be_stderr(ends.write);
    Log log(LogLevel::info, all, "");
    ASSERT_EQ(::tcflow(ends.write, TCOOFF), 0);  // Ctrl-S
    for (int i = 0; i < 10; ++i) log.warn("x", "hello");
    ASSERT_EQ(::tcflow(ends.write, TCOON), 0);
    log.warn("x", "the end");
    const std::string text = taken(ends.read);
    EXPECT_EQ(count(text, "x: hello") + lost(text), 10u);
    EXPECT_EQ(count(text, "x: the end"), 1u);
  });
}

TEST(LineWriter, ALineLongerThanAPipeIsCutAndTheNextBeginsItsOwn) {
  in_child([] {
    const Ends ends = make_pipe();
    be_stderr(ends.write);
    Log log(LogLevel::info, all, "");
    log.warn("x", "{}", std::string(100'000, '-'));
    std::string text = taken(ends.read);
    log.warn("x", "the end");
    text += taken(ends.read);
    EXPECT_EQ(lost(text), 1u);
    EXPECT_EQ(count(text, "\n"), 3u);
    EXPECT_TRUE(text.ends_with(" tutti WARN x: the end\n"));
  });
}

}  // namespace
}  // namespace tutti
