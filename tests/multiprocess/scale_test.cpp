// Many ranks on several hosts, as threads and processes mixed: they start, and what each process holds open is bounded
// by the logarithm of their number, and by what its calls need.
#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <iostream>
#include <string>

#include <fmt/format.h>

#include "support/call.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

/// Hosts are such by name: TUTTI_HOSTID.
struct Machines {
  int hosts;
  int processes;  ///< of a host
  int threads;    ///< of a process
  int ranks() const { return hosts * processes * threads; }
};

/// Connections of this process: sockets of the internet that have a peer are not told from others here.
std::uint64_t open_sockets() {
  std::uint64_t count = 0;
  DIR* const directory = ::opendir("/proc/self/fd");
  for (const dirent* entry = ::readdir(directory); entry != nullptr; entry = ::readdir(directory)) {
    std::array<char, 64> target{};
    const std::string path = std::string("/proc/self/fd/") + entry->d_name;
    if (::readlink(path.c_str(), target.data(), target.size() - 1) > 0)
      count += std::string(target.data()).starts_with("socket:") ? 1 : 0;
  }
  ::closedir(directory);
  return count;
}

enum Word : std::size_t { joined, used, words };

class Scale : public ::testing::TestWithParam<Machines> {
 protected:
  /// Of a process, once nothing of the start is left: connections of the start are closed a moment after it.
  static std::uint64_t settled_sockets(std::uint64_t most) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::uint64_t held = open_sockets();
    for (; held > most && std::chrono::steady_clock::now() < limit; held = open_sockets()) ::poll(nullptr, 0, 5);
    return held;
  }
  static void note(Seat& seat, Word word, std::uint64_t sockets) {
    auto& most = seat.board().word(word);
    for (auto seen = most.load(); seen < sockets && !most.compare_exchange_weak(seen, sockets);) {
    }
  }
};

/// A rank has control connections to those 1, 2, 4, … before and behind it, and a process three sockets besides: it
/// hands out segments, and listens at one or two addresses.
TEST_P(Scale, StartsAndHoldsFewConnections) {
  const Machines machines = GetParam();
  const int ranks = machines.ranks();
  const auto steps = static_cast<std::uint64_t>(std::bit_width(static_cast<unsigned>(ranks - 1)));
  const std::uint64_t most = static_cast<std::uint64_t>(machines.threads) * 2 * steps + 16;
  const int of_a_host = machines.processes * machines.threads;
  Workers workers({.ranks = ranks,
                   .layout = Layout::pairs,
                   .environment = {"TUTTI_SOCKET_IFNAME=lo", "TUTTI_SOCKET_FAMILY=AF_INET"},
                   .limit = std::chrono::seconds(300),
                   .words = words,
                   .threads = machines.threads,
                   .environment_of =
                       [&](int first) { return std::vector{fmt::format("TUTTI_HOSTID=host {}", first / of_a_host)}; }},
                  [&](Seat& seat) {
                    const auto comm = seat.init_one();
                    ASSERT_NE(comm, nullptr);
                    ASSERT_TRUE(seat.meet());
                    const bool first = seat.rank() % machines.threads == 0;
                    if (first) {
                      const std::uint64_t sockets = settled_sockets(most);
                      EXPECT_LE(sockets, most);
                      note(seat, joined, sockets);
                    }
                    ASSERT_TRUE(seat.meet());
                    for (const std::size_t count : {std::size_t{3}, std::size_t{50'000}}) {
                      const Call call{.count = count, .seed = count};
                      EXPECT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}), "");
                    }
                    if (first) {
                      rlimit limit{};
                      ::getrlimit(RLIMIT_NOFILE, &limit);
                      EXPECT_EQ(limit.rlim_cur, limit.rlim_max) << "raised, for those who call everybody";
                      note(seat, used, open_sockets());
                    }
                    ASSERT_TRUE(seat.meet());
                    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
                  });
  EXPECT_TRUE(workers.finish());
  std::cout << fmt::format(
      "{} ranks, {} hosts of {} processes of {} ranks: {} sockets of a process after the start, "
      "{} after all-reduces\n",
      ranks, machines.hosts, machines.processes, machines.threads, workers.board().word(joined).load(),
      workers.board().word(used).load());
  EXPECT_GT(workers.board().word(joined), 0u);
}

std::string name_of(const ::testing::TestParamInfo<Machines>& test) {
  return fmt::format("{}_ranks", test.param.ranks());
}
INSTANTIATE_TEST_SUITE_P(Few, Scale, ::testing::Values(Machines{2, 2, 3}), name_of);
INSTANTIATE_TEST_SUITE_P(Nightly, Scale, ::testing::Values(Machines{4, 4, 4}, Machines{4, 8, 8}), name_of);

}  // namespace
}  // namespace tutti::testing
