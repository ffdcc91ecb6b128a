// Communicators, streams and memory come and go and leave nothing behind; a forked child is told off and harms nobody.
#include <dirent.h>
#include <malloc.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "support/call.h"
#include "support/descriptors.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

int entries(const char* directory) {
  DIR* const at = ::opendir(directory);
  if (at == nullptr) return -1;
  int count = 0;
  while (::readdir(at) != nullptr) ++count;
  ::closedir(at);
  return count;
}

/// What a process holds that must not grow.
struct Holdings {
  int descriptors = 0;
  int threads = 0;
  int shared_maps = 0;           ///< of memfds and sockets' memory: what tutti maps
  std::size_t heap_bytes = 0;    ///< allocated and not freed
  std::size_t resident_kib = 0;  ///< what the kernel says of all of it

  static Holdings now() {
    Holdings held{.descriptors = entries("/proc/self/fd"), .threads = entries("/proc/self/task")};
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) held.shared_maps += line.find("memfd:") != std::string::npos;
    held.heap_bytes = ::mallinfo2().uordblks;
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0;
    statm >> pages >> held.resident_kib;
    held.resident_kib *= 4;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    held.heap_bytes = held.resident_kib = 0;  // their allocators keep what is freed, to find its use
#endif
    return held;
  }
  bool within(const Holdings& other) const {
    return descriptors <= other.descriptors && threads <= other.threads && shared_maps <= other.shared_maps &&
           heap_bytes <= other.heap_bytes + heap_slack && resident_kib <= other.resident_kib + resident_slack_kib;
  }

  // Free blocks that the allocator keeps per thread count as allocated, and pages come back late. Measured: at most
  // 44 KB and 600 KiB, however many cycles.
  static constexpr std::size_t heap_slack = 64 * 1024;
  static constexpr std::size_t resident_slack_kib = 2 * 1024;
};

std::ostream& operator<<(std::ostream& out, const Holdings& held) {
  return out << held.descriptors << " descriptors, " << held.threads << " threads, " << held.shared_maps << " maps, "
             << held.heap_bytes << " bytes of heap, " << held.resident_kib << " KiB resident";
}

/// Sockets are closed by the service thread and by peers, a moment later.
void expect_within(const Holdings& before) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  Holdings now = Holdings::now();
  for (; !now.within(before) && std::chrono::steady_clock::now() < limit; now = Holdings::now()) ::poll(nullptr, 0, 5);
  EXPECT_TRUE(now.within(before)) << "before: " << before << "; now: " << now;
}

int cycles() {
  const char* const given = std::getenv("TUTTI_TEST_CYCLES");
  return given == nullptr ? 200 : std::atoi(given);
}

/// Runs `cycle` a few times to warm up, then many times; after that the process holds no more than before.
void expect_no_growth(Layout layout, const std::function<void(Seat&, int)>& cycle, int init_limit_ms = 60'000) {
  launch_ranks({.ranks = 2,
                .layout = layout,
                .environment = {"TUTTI_DEBUG=NONE", "TUTTI_INIT_TIMEOUT_MS=" + std::to_string(init_limit_ms)},
                .limit = std::chrono::seconds(600)},
               [&cycle](Seat& seat) {
                 constexpr int warm_up = 5;
                 Holdings before;
                 for (int i = 0; i < warm_up + cycles(); ++i) {
                   if (i == warm_up) {
                     ASSERT_TRUE(seat.meet());
                     if (seat.rank() == 0) before = Holdings::now();  // threads count the same things
                     ASSERT_TRUE(seat.meet());
                     if (seat.rank() == 1) before = Holdings::now();
                     ASSERT_TRUE(seat.meet());
                   }
                   seat.doing("cycle " + std::to_string(i));
                   cycle(seat, i);
                   if (::testing::Test::HasFailure()) return;
                 }
                 ASSERT_TRUE(seat.meet());
                 expect_within(before);
                 ASSERT_TRUE(seat.meet());
               });
}

/// Board::share_id has room for few ids: later ones come over a communicator, as any program would pass them on.
tuttiComm_t next_comm(Seat& seat, tuttiComm_t parent) {
  tuttiUniqueId id{};
  const auto made = seat.rank() == 0 ? tuttiGetUniqueId(&id) : tuttiSuccess;
  EXPECT_TRUE(ok(made));
  EXPECT_TRUE(ok(tuttiBroadcast(&id, &id, sizeof id, tuttiUint8, 0, parent, nullptr)));
  tuttiComm_t comm = nullptr;
  EXPECT_TRUE(ok(tuttiCommInitRank(&comm, 2, id, seat.rank())));
  return comm;
}

class Lifecycle : public ::testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, Lifecycle, ::testing::Values(Layout::threads, Layout::processes),
                         [](const auto& test) { return name(test.param); });

TEST_P(Lifecycle, CommunicatorsLeaveNothing) {
  std::vector<tuttiComm_t> parents(2);
  expect_no_growth(GetParam(), [&](Seat& seat, int cycle) {
    auto& parent = parents[static_cast<std::size_t>(seat.rank())];
    if (parent == nullptr) parent = seat.init_one();
    const auto comm = next_comm(seat, parent);
    ASSERT_NE(comm, nullptr);
    const std::uint64_t round = static_cast<std::uint64_t>(cycle);
    EXPECT_EQ(run_call({.count = 10, .seed = round}, seat.here(), 2, {comm}), "");
    const Call large{.count = 40'000, .memory = static_cast<Mix>(cycle % mix_count), .seed = round};
    EXPECT_EQ(run_call(large, seat.here(), 2, {comm}), "");
    ASSERT_TRUE(seat.meet());  // an abort ends the calls of others
    EXPECT_TRUE(ok(cycle % 3 == 2 ? tuttiCommAbort(comm) : tuttiCommDestroy(comm)));
  });
}

/// On one host. What served the starts goes a moment after them.
TEST(LiveCommunicators, HoldNoDescriptors) {
  launch_ranks({.ranks = 2, .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const auto parent = seat.init_one();
    ASSERT_NE(parent, nullptr);
    std::vector<tuttiComm_t> comms = {next_comm(seat, parent)};
    ASSERT_TRUE(seat.meet());
    const auto before = open_descriptors();
    for (int i = 0; i < 20; ++i) comms.push_back(next_comm(seat, parent));
    EXPECT_TRUE(descriptors_fall_to(before)) << open_descriptors() << " instead of " << before;
    for (const auto comm : comms) EXPECT_EQ(run_call({.count = 10, .seed = 1}, seat.here(), 2, {comm}), "");
    for (const auto comm : comms) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// A program may make ids that nobody comes to use.
TEST(UnusedIds, HoldNoDescriptors) {
  launch_ranks({.ranks = 2, .layout = Layout::threads, .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    static std::vector<tuttiUniqueId> ids(200);
    if (seat.rank() == 0) {
      ASSERT_TRUE(ok(tuttiGetUniqueId(&ids.front())));
      const auto before = open_descriptors();
      for (auto& id : ids) ASSERT_TRUE(ok(tuttiGetUniqueId(&id)));
      EXPECT_TRUE(descriptors_fall_to(before)) << open_descriptors() << " instead of " << before;
    }
    ASSERT_TRUE(seat.meet());
    for (std::size_t dropped = 10; dropped < 100 && seat.rank() == 0; ++dropped)
      ASSERT_TRUE(ok(tuttiDropUniqueId(&ids[dropped])));
    for (const std::size_t used : {150, 3, 199}) {
      tuttiComm_t comm = nullptr;
      ASSERT_TRUE(ok(tuttiCommInitRank(&comm, 2, ids[used], seat.rank())));
      EXPECT_EQ(run_call({.count = 10, .seed = used}, seat.here(), 2, {comm}), "");
      EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    }
  });
}

TEST_P(Lifecycle, SplitsLeaveNothing) {
  std::vector<tuttiComm_t> parents(2);
  expect_no_growth(GetParam(), [&](Seat& seat, int cycle) {
    auto& parent = parents[static_cast<std::size_t>(seat.rank())];
    if (parent == nullptr) parent = seat.init_one();
    tuttiComm_t part = nullptr;
    ASSERT_TRUE(ok(tuttiCommSplit(parent, cycle % 2 == 0 ? 0 : seat.rank(), -seat.rank(), &part, nullptr)));
    EXPECT_TRUE(ok(tuttiBarrier(part, nullptr)));
    EXPECT_TRUE(ok(tuttiCommDestroy(part)));
  });
}

TEST_P(Lifecycle, FailedStartsLeaveNothing) {
  constexpr int kept_ms = 4'000;  // for those who come late
  const auto fail_to_start = [](Seat& seat, int cycle) {
    if (cycle >= 240) return;
    const auto id = seat.next_id();
    tuttiComm_t comm = nullptr;
    EXPECT_TRUE(fails(tuttiCommInitRank(&comm, 2, id, 0), tuttiInvalidUsage, "two processes"));
    ASSERT_TRUE(seat.meet());
  };
  expect_no_growth(GetParam(), fail_to_start, kept_ms);
}

TEST_P(Lifecycle, StreamsAndMemoryLeaveNothing) {
  std::vector<tuttiComm_t> comms(2);
  expect_no_growth(GetParam(), [&](Seat& seat, int cycle) {
    auto& comm = comms[static_cast<std::size_t>(seat.rank())];
    if (comm == nullptr) comm = seat.init_one();
    tuttiStream_t stream = nullptr;
    ASSERT_TRUE(ok(tuttiStreamCreate(&stream)));
    CallOnRank one({.count = 50'000, .seed = static_cast<std::uint64_t>(cycle)}, seat.rank(), 2);
    EXPECT_TRUE(ok(one.submit(comm, stream)));
    EXPECT_TRUE(ok(tuttiStreamSynchronize(stream)));
    EXPECT_EQ(one.check(), "");
    EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
  });
}

/// A rank that needs nothing of the others has its result early and frees its buffers: no late one may want to map
/// them.
TEST(Memory, IsTheCallersAgainWhenItsCallReturns) {
  launch_ranks({.ranks = 5, .environment = {"TUTTI_TRANSPORT=mapped"}}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    for (int round = 0; round < 50; ++round)
      for (int kind = 0; kind < kind_count; ++kind) {
        const Call call{.kind = static_cast<Kind>(kind),
                        .count = 3'000,
                        .root = round % 5,
                        .seed = static_cast<std::uint64_t>(round)};
        seat.doing(call.text());
        ASSERT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}), "") << call.text();
      }
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

TEST(Leftovers, NothingNamedIsMade) {
  const int before = entries("/dev/shm");
  launch_ranks({.ranks = 3, .layout = Layout::processes}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    EXPECT_EQ(run_call({.count = 100'000, .seed = 3}, seat.here(), 3, {comm}), "");
    ASSERT_TRUE(seat.meet());  // or a rank that ends would be missed by those that are still in the call
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) EXPECT_EQ(line.find("/dev/shm"), std::string::npos) << line;
    std::ifstream sockets("/proc/self/net/unix");
    for (std::string line; std::getline(sockets, line);) EXPECT_EQ(line.find("/tutti"), std::string::npos) << line;
    // Neither destroyed nor freed: the process just ends.
  });
  if (before == 2) {
    EXPECT_EQ(entries("/dev/shm"), 2) << "somebody left something";
  }
}

/// Calls of a forked child: all of them must be refused.
void expect_refused_in_child(tuttiComm_t comm, tuttiStream_t stream) {
  const auto refused = [](tuttiResult_t result) { return fails(result, tuttiInvalidUsage, "forked"); };
  float x = 1;
  void* memory = nullptr;
  tuttiUniqueId id;
  tuttiComm_t other = nullptr;
  EXPECT_TRUE(refused(tuttiAllReduce(&x, &x, 1, tuttiFloat32, tuttiSum, comm, nullptr)));
  EXPECT_TRUE(refused(tuttiAllReduce(&x, &x, 1, tuttiFloat32, tuttiSum, comm, stream)));
  EXPECT_TRUE(refused(tuttiBarrier(comm, nullptr)));
  EXPECT_TRUE(refused(tuttiSend(&x, 1, tuttiFloat32, 0, comm, nullptr)));
  EXPECT_TRUE(refused(tuttiCommSplit(comm, 0, 0, &other, nullptr)));
  const int me = 0;
  EXPECT_TRUE(refused(tuttiCommCreateGroup(comm, &me, 1, &other, nullptr)));
  EXPECT_TRUE(refused(tuttiCommFinalize(comm)));
  EXPECT_TRUE(refused(tuttiCommDestroy(comm)));
  EXPECT_TRUE(refused(tuttiCommAbort(comm)));
  EXPECT_TRUE(refused(tuttiGetUniqueId(&id)));
  EXPECT_TRUE(refused(tuttiCommInitAll(&other, 1, nullptr)));
  EXPECT_TRUE(refused(tuttiMemAlloc(&memory, 100)));
  EXPECT_TRUE(refused(tuttiStreamCreate(&stream)));
  EXPECT_TRUE(refused(tuttiStreamSynchronize(stream)));
  EXPECT_TRUE(refused(tuttiStreamDestroy(stream)));
}

TEST(Fork, ChildIsRefusedAndParentUnharmed) {
  launch_ranks({.ranks = 2, .layout = Layout::processes}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    tuttiStream_t stream = nullptr;
    ASSERT_TRUE(ok(tuttiStreamCreate(&stream)));
    const Call large{.count = 100'000, .seed = 5};
    EXPECT_EQ(run_call(large, seat.here(), 2, {comm}), "");
    for (int i = 0; i < 3; ++i) {
      std::fflush(nullptr);
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        if (seat.rank() == 0) expect_refused_in_child(comm, stream);
        std::fflush(nullptr);
        ::_exit(::testing::Test::HasFailure() ? 1 : 0);
      }
      EXPECT_EQ(run_call(large, seat.here(), 2, {comm}), "");
      int status = -1;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      EXPECT_EQ(run_call(large, seat.here(), 2, {comm}, 2), "");
    }
    EXPECT_TRUE(ok(tuttiStreamDestroy(stream)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
