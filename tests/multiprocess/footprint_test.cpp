// What a rank costs its machine: descriptors, maps and memory, for few and for many ranks. Prints the table of
// docs/architecture.md.
#include <dirent.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iostream>

#include <fmt/format.h>

#include "support/call.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

/// Of one process: descriptors, maps of shared memory, pages (KiB) of the shared memory it owns, and of its own.
using Footprint = std::array<std::uint64_t, 4>;
enum { descriptors, maps, shared_kib, private_kib };

Footprint footprint() {
  Footprint held{};
  DIR* const directory = ::opendir("/proc/self/fd");
  for (const dirent* entry = ::readdir(directory); entry != nullptr; entry = ::readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    ++held[descriptors];
    const std::string path = std::string("/proc/self/fd/") + entry->d_name;
    std::array<char, 64> target{};
    struct stat status {};
    if (::readlink(path.c_str(), target.data(), target.size() - 1) < 0) continue;
    if (std::string(target.data()).starts_with("/memfd:") && ::stat(path.c_str(), &status) == 0)
      held[shared_kib] += static_cast<std::uint64_t>(status.st_blocks) / 2;
  }
  ::closedir(directory);
  std::ifstream map_lines("/proc/self/maps");
  for (std::string line; std::getline(map_lines, line);) held[maps] += line.find("/memfd:") != std::string::npos;
  std::ifstream status_lines("/proc/self/status");
  for (std::string line; std::getline(status_lines, line);)
    if (line.starts_with("RssAnon:")) held[private_kib] = std::stoull(line.substr(8));
  return held;
}

enum Phase { before, joined, used, joined_twice, stages };
constexpr std::array stage_names = {"before", "joined", "used", "joined twice"};

struct Setup {
  int ranks;
  Layout layout;  ///< a process per rank, or one for all
};

class Footprints : public ::testing::TestWithParam<Setup> {
 protected:
  static std::size_t at(Phase stage, std::size_t rank) {
    return (stage * static_cast<std::size_t>(GetParam().ranks) + rank) * Footprint{}.size();
  }
  /// What a process may hold more than before: a watch on each other process, whatever the communicators; a segment for
  /// each communicator of each rank here; the socket that hands out segments and the bell of the service thread; and,
  /// where the kind of a buffer's pages matters, /proc/self/pagemap.
  static std::uint64_t descriptors_max(Phase stage) {
    if (stage == before) return 1'000'000;
    const bool alone = GetParam().layout == Layout::processes;
    const auto n = static_cast<std::uint64_t>(GetParam().ranks);
    const std::uint64_t communicators = stage == joined_twice ? 2 : 1;
    return (alone ? n - 1 : 0) + communicators * (alone ? 1 : n) + 2 + (stage == joined ? 0 : 1);
  }
  /// By the first rank of each process, while no rank does anything. Sockets of the start are closed a moment later.
  static void note(Seat& seat, Phase stage) {
    ASSERT_TRUE(seat.meet());
    if (GetParam().layout == Layout::processes || seat.rank() == 0) {
      const auto rank = static_cast<std::size_t>(seat.rank());
      const std::uint64_t most = seat.board().word(at(before, rank) + descriptors) + descriptors_max(stage);
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      Footprint held = footprint();
      for (; held[descriptors] > most && std::chrono::steady_clock::now() < limit; held = footprint())
        ::poll(nullptr, 0, 5);
      for (std::size_t i = 0; i < held.size(); ++i) seat.board().word(at(stage, rank) + i) = held[i];
    }
    ASSERT_TRUE(seat.meet());
  }
  static void run(Seat& seat) {
    note(seat, before);
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    note(seat, joined);
    EXPECT_EQ(run_call({.count = 10, .seed = 1}, seat.here(), seat.ranks(), {comm}), "");
    for (const Mix memory : {Mix::mapped, Mix::heap}) {
      const Call large{.count = 20'000, .memory = memory, .seed = 2};
      EXPECT_EQ(run_call(large, seat.here(), seat.ranks(), {comm}), "");
    }
    note(seat, used);
    const auto second = seat.init_one();
    ASSERT_NE(second, nullptr);
    note(seat, joined_twice);
    EXPECT_TRUE(ok(tuttiCommDestroy(second)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  }
  /// The most that a process has more than before.
  static Footprint most(Board& board, Phase stage) {
    const bool all = GetParam().layout == Layout::processes;
    Footprint result{};
    for (std::size_t rank = 0; rank < (all ? static_cast<std::size_t>(GetParam().ranks) : 1); ++rank)
      for (std::size_t i = 0; i < result.size(); ++i) {
        const std::uint64_t was = board.word(at(before, rank) + i);
        const std::uint64_t now = board.word(at(stage, rank) + i);
        result[i] = std::max(result[i], now > was ? now - was : 0);
      }
    return result;
  }
};

INSTANTIATE_TEST_SUITE_P(Ranks, Footprints,
                         ::testing::Values(Setup{2, Layout::processes}, Setup{8, Layout::processes},
                                           Setup{64, Layout::processes}, Setup{256, Layout::processes},
                                           Setup{8, Layout::threads}, Setup{256, Layout::threads}),
                         [](const auto& test) {
                           return std::string(name(test.param.layout)) + "_" + std::to_string(test.param.ranks);
                         });

TEST_P(Footprints, GrowAsDocumented) {
  const auto [ranks, layout] = GetParam();
  Workers workers({.ranks = ranks, .layout = layout, .limit = std::chrono::seconds(900), .words = at(stages, 0)}, run);
  ASSERT_TRUE(workers.finish());
  const auto n = static_cast<std::uint64_t>(ranks);
  const std::uint64_t here = layout == Layout::processes ? 1 : n;  // ranks of a process
  for (const Phase stage : {joined, used, joined_twice}) {
    const Footprint held = most(workers.board(), stage);
    std::cout << fmt::format("{} of {} ranks, {}: {} descriptors, {} maps, {} KiB shared, {} KiB private\n",
                             here == 1 ? "one" : "all", ranks, stage_names[stage], held[descriptors], held[maps],
                             held[shared_kib], held[private_kib]);
    const std::uint64_t communicators = stage == joined_twice ? 2 : 1;
    EXPECT_LE(held[descriptors], descriptors_max(stage));
    EXPECT_EQ(held[maps], communicators * n);
    EXPECT_LE(held[shared_kib], communicators * here * 2048);
  }
}

}  // namespace
}  // namespace tutti::testing
