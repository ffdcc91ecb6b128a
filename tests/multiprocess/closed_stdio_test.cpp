// Programs that have closed standard streams, before their start or after it: right results, and nothing in any file
// that does not belong there.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/folder.h"
#include "support/in_child.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

enum Word : std::size_t { late };

std::string content(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string text(1 << 20, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(::pread(file, text.data(), text.size(), 0), 0)));
  ::close(file);
  return text;
}

/// What a launcher's standard error would be; without close-on-exec, as that one.
void have_stderr(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ASSERT_EQ(::dup2(file, STDERR_FILENO), STDERR_FILENO);
  ::close(file);
}

bool is_log(const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (text.substr(at, end - at).find(" tutti ") == std::string::npos) return false;
    at = end + 1;
  }
  return true;
}

/// A sum and a broadcast; every element is looked at.
bool calls_work(tuttiComm_t comm, int rank, int ranks, std::size_t count) {
  std::vector<std::int64_t> data(count), wanted(count);
  std::iota(data.begin(), data.end(), rank);
  for (std::size_t i = 0; i < count; ++i)
    wanted[i] = static_cast<std::int64_t>(i) * ranks + static_cast<std::int64_t>(ranks) * (ranks - 1) / 2;
  auto* const at = data.data();
  const bool summed = ok(tuttiAllReduce(at, at, count, tuttiInt64, tuttiSum, comm, nullptr)) && data == wanted;
  std::iota(data.begin(), data.end(), 1000 * rank);
  std::iota(wanted.begin(), wanted.end(), 1000 * (ranks - 1));
  return summed && ok(tuttiBroadcast(at, at, count, tuttiInt64, ranks - 1, comm, nullptr)) && data == wanted;
}

/// On the communicator, and on one made of it, whose descriptors are new.
void calls_and_starts_work(tuttiComm_t comm, int rank, int ranks) {
  for (const std::size_t count : {1, 5'000, 200'000}) EXPECT_TRUE(calls_work(comm, rank, ranks, count)) << count;
  tuttiComm_t part = nullptr;
  ASSERT_TRUE(ok(tuttiCommSplit(comm, 0, 0, &part, nullptr)));
  EXPECT_TRUE(calls_work(part, rank, ranks, 20'000));
  EXPECT_TRUE(ok(tuttiCommDestroy(part)));
}

/// A file of the program's own.
struct OwnFile {
  explicit OwnFile(std::string name) : path(std::move(name)), fd(::open(path.c_str(), O_RDWR | O_CREAT, 0600)) {
    EXPECT_EQ(::write(fd, "mine", 4), 4);
  }
  std::string path;
  int fd;
};

std::vector<OwnFile> own_files(const Folder& folder, int rank) {
  std::vector<OwnFile> own;
  for (int i = 0; i < 3; ++i) own.emplace_back(folder / fmt::format("own{}_{}", rank, i));
  return own;
}

/// Waits until a number of a standard stream is free; a thread of the library may hold it at this moment, not for long.
bool becomes_free(Board& board) {
  for (int tries = 0; tries < 2000 && !board.over(); ++tries) {
    const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(fd);
    if (fd < 3) return true;
    board.wait_for(late, 1, std::chrono::milliseconds(1));
  }
  return false;
}

struct Case {
  const char* transport;
  int closed;  ///< of rank 0, as bits; rank 1 has closed the others
  const char* level;
};

std::vector<Case> cases(std::initializer_list<const char*> levels) {
  std::vector<Case> all;
  for (const char* const transport : {"auto", "slots", "cma", "mapped", "socket", "rdma"})
    for (int closed = 0; closed < 8; ++closed)
      for (const char* const level : levels) all.push_back({transport, closed, level});
  return all;
}

std::string name_of(const ::testing::TestParamInfo<Case>& test) {
  return fmt::format("{}_{}_{}", test.param.transport, test.param.closed, test.param.level);
}

class ClosedBefore : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Stdio, ClosedBefore, ::testing::ValuesIn(cases({"WARN", "TRACE"})), name_of);
class ClosedAfter : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Stdio, ClosedAfter, ::testing::ValuesIn(cases({"TRACE"})), name_of);

Team team_of(const Case& of, int ranks) {
  return {.ranks = ranks,
          .environment = {std::string("TUTTI_TRANSPORT=") + of.transport, std::string("TUTTI_DEBUG=") + of.level,
                          "TUTTI_DEBUG_SUBSYS=ALL"}};
}

/// The program closes them before it starts, and afterwards opens files of its own, which get these numbers.
TEST_P(ClosedBefore, TheStart) {
  const Folder folder;
  launch_ranks(team_of(GetParam(), 2), [&](Seat& seat) {
    const int closed = seat.rank() == 0 ? GetParam().closed : 7 - GetParam().closed;
    const std::string lines = folder / fmt::format("stderr{}", seat.rank());
    have_stderr(lines);
    close_stdio(closed);
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    calls_and_starts_work(comm, seat.rank(), 2);
    // The fake library for RDMA keeps descriptors of its own there.
    const bool keeps = std::string(GetParam().transport) == "rdma";
    EXPECT_TRUE(closed == 0 || keeps || becomes_free(seat.board()));
    const auto own = own_files(folder, seat.rank());
    calls_and_starts_work(comm, seat.rank(), 2);
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    for (const OwnFile& file : own) EXPECT_EQ(content(file.path), "mine");
    const bool tells = (closed & 4) == 0 && std::string(GetParam().level) == "TRACE";
    EXPECT_EQ(content(lines).find(" tutti INFO ") != std::string::npos, tells);
    EXPECT_TRUE(is_log(content(lines))) << content(lines);
  });
}

/// The program closes them while it has a communicator; what follows opens connections.
TEST_P(ClosedAfter, TheStart) {
  const Folder folder;
  launch_ranks(team_of(GetParam(), 2), [&](Seat& seat) {
    const std::string lines = folder / fmt::format("stderr{}", seat.rank());
    have_stderr(lines);
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const int closed = seat.rank() == 0 ? GetParam().closed : 7 - GetParam().closed;
    close_stdio(closed);
    calls_and_starts_work(comm, seat.rank(), 2);
    const auto own = own_files(folder, seat.rank());
    calls_and_starts_work(comm, seat.rank(), 2);
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    for (const OwnFile& file : own) EXPECT_EQ(content(file.path), "mine");
    EXPECT_TRUE(is_log(content(lines))) << content(lines);
  });
}

/// At the usual level: what rank 0, without a standard error, says of the one who is late, must not go to anybody.
/// Rank 2 has one, and shows when.
TEST(ClosedStderr, AWarningGoesNowhere) {
  const Folder folder;
  Team team{.ranks = 3, .environment = {"TUTTI_TRANSPORT=socket", "TUTTI_DEBUG=WARN", "TUTTI_STALL_REPORT_MS=1"}};
  launch_ranks(team, [&](Seat& seat) {
    const std::string lines = folder / fmt::format("stderr{}", seat.rank());
    have_stderr(lines);
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    if (seat.rank() == 0) ::close(2);
    tuttiComm_t part = nullptr;
    ASSERT_TRUE(ok(tuttiCommSplit(comm, 0, 0, &part, nullptr)));
    for (std::ptrdiff_t round = 0; round < 5; ++round) {
      const auto others_said = [&] {
        const std::string text = content(folder / "stderr2");
        return std::ranges::count(text, '\n');
      };
      while (seat.rank() == 1 && others_said() <= round && !seat.board().over())
        seat.board().wait_for(late, 1, std::chrono::milliseconds(1));
      EXPECT_TRUE(calls_work(part, seat.rank(), 3, 100'000));
    }
    EXPECT_TRUE(ok(tuttiCommDestroy(part)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// Standard error, or TUTTI_DEBUG_FILE, that is a pipe whose reader sleeps, or is gone.
struct Pipe {
  const char* name;
  bool is_file, reader_sleeps;
};

class PipedLog : public ::testing::TestWithParam<Pipe> {};
INSTANTIATE_TEST_SUITE_P(Log, PipedLog,
                         ::testing::Values(Pipe{"stderr_full", false, true}, Pipe{"stderr_gone", false, false},
                                           Pipe{"file_full", true, true}, Pipe{"file_gone", true, false}),
                         [](const auto& param) { return std::string(param.param.name); });

void fill(int pipe) {
  const std::array<char, 4096> page{};
  const int marks = ::fcntl(pipe, F_GETFL);
  ::fcntl(pipe, F_SETFL, marks | O_NONBLOCK);
  while (::write(pipe, page.data(), page.size()) > 0) {
  }
  ::fcntl(pipe, F_SETFL, marks);
}

TEST_P(PipedLog, StopsNoCallAndEndsNobody) {
  const Folder folder;
  Team team{.ranks = 2, .environment = {"TUTTI_TRANSPORT=socket", "TUTTI_DEBUG=TRACE", "TUTTI_DEBUG_SUBSYS=ALL"}};
  const std::string path = folder / "fifo";
  if (GetParam().is_file) team.environment.push_back("TUTTI_DEBUG_FILE=" + path);
  launch_ranks(team, [&](Seat& seat) {
    ASSERT_EQ(::mkfifo(path.c_str(), 0600) == 0 || errno == EEXIST, true);
    const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const int writer = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    fill(writer);
    if (GetParam().is_file) {
      have_stderr("/dev/null");
    } else {
      ASSERT_EQ(::dup2(writer, STDERR_FILENO), STDERR_FILENO);
    }
    ::close(writer);
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    ASSERT_TRUE(seat.meet());
    if (!GetParam().reader_sleeps) ::close(reader);
    ASSERT_TRUE(seat.meet());
    for (int i = 0; i < 3; ++i) calls_and_starts_work(comm, seat.rank(), 2);
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
