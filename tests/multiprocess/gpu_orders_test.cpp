// Several communicators of the same ranks, whose calls meet in different orders, and a rank that is lost amid replays:
// what a real driver could make of it, as tools/gpu-check runs these tests on a GPU.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "support/gpu_meeting.h"

namespace tutti::testing {
namespace {

constexpr std::size_t large = 140'000;  // through windows, once peers have mapped the buffers

/// With as many blocks as calls have, where there is a GPU.
Team processes(int ranks, std::vector<std::string> settings = {"TUTTI_DEBUG=WARN"}) {
  if (real_library == nullptr) return team_of(ranks, Seating::processes, std::move(settings));
  return launch_group(ranks, Layout::processes, settings);
}

/// Counted by the fake driver.
int opens() {
  return fake_cuda(library).calls("cuIpcOpenMemHandle");
}
int closes() {
  return fake_cuda(library).calls("cuIpcCloseMemHandle");
}

/// Calls until every rank has opened `buffers` more of its peers: when that happens is up to each rank's driver thread.
/// On a GPU nothing counts, so there are many calls. False: a rank has failed.
bool call_until_mapped(Seat& seat, const OneRank& shared, int buffers) {
  const int before = opens();
  if (!seat.meet()) return false;  // a rank maps what its peers have offered before it calls itself
  for (int call = 0;; ++call) {
    EXPECT_TRUE(ok(shared.all_reduce()));
    expect_sum(shared, seat.ranks());
    if (::testing::Test::HasFailure()) return false;
    if (real_library != nullptr && call == 60) return true;
    if (real_library != nullptr) continue;
    seat.board().word(static_cast<std::size_t>(seat.rank())).store(opens() >= before + buffers ? 1 : 0);
    if (!seat.meet()) return false;
    bool all = true;
    for (int rank = 0; rank < seat.ranks(); ++rank)
      all = all && seat.board().word(static_cast<std::size_t>(rank)).load() == 1;
    if (!seat.meet()) return false;
    if (all) return true;
  }
}

/// It looks for memory that was freed every tenth of a second, and nothing says when it has.
void let_the_janitor_look() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(250);
  while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
}

/// Rank 0 calls on one communicator first, the others on the other one, and a while later on the one that is left; and
/// a rank frees, each time, buffers that its peers have mapped, which these close meanwhile, as kernels wait for each
/// other.
TEST(GpuOrders, TwoCommunicatorsWhileMemoryIsFreed) {
  in_seats(processes(3), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    tuttiComm_t other = nullptr;
    ASSERT_TRUE(ok(tuttiCommSplit(comm, 0, seat.rank(), &other, nullptr)));
    fake_cuda(library).set_queue_max(100'000);  // releases wait for kernels, as those of a real driver do
    const OneRank one(user, comm, seat.rank(), large), two(user, other, seat.rank(), large);
    const int rounds = real_library != nullptr ? 24 : 4;
    for (int round = 0; round < rounds && !::testing::Test::HasFatalFailure(); ++round) {
      {
        const OneRank shared(user, comm, seat.rank(), large);
        if (!call_until_mapped(seat, shared, 4) || !seat.meet()) return;  // input and output of two peers
        if (seat.rank() == 2) user.free(shared.input);
        if (seat.rank() == 2) user.free(shared.output);
      }
      user.write(one.input, numbers(large, seat.rank(), round));
      user.write(two.input, numbers(large, seat.rank(), round + 1));
      const bool first = (seat.rank() == 0) == (round % 2 == 0);
      ASSERT_TRUE(ok((first ? one : two).all_reduce()));
      let_the_janitor_look();
      ASSERT_TRUE(ok((first ? two : one).all_reduce()));
      expect_sum(one, 3, round);
      expect_sum(two, 3, round + 1);
    }
    if (!seat.meet()) return;
    while (real_library == nullptr && seat.rank() != 2 && closes() == 0 && !::testing::Test::HasFailure())
      std::this_thread::yield();  // the team's limit ends it
    EXPECT_TRUE(ok(tuttiCommDestroy(other)));
  });
}

/// Kernels of a graph wait for those of peers whenever the program replays it. So what peers have freed is closed only
/// when the graph is gone.
TEST(GpuOrders, NothingIsClosedWhileAGraphMayBeReplayed) {
  if (real_library != nullptr) GTEST_SKIP() << "only the fake driver counts";
  in_seats(processes(2), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    const OneRank one(user, comm, seat.rank(), 300), shared(user, comm, seat.rank(), large);
    if (!call_until_mapped(seat, shared, 2)) return;  // input and output
    user.begin_capture(one.stream);
    ASSERT_TRUE(ok(one.all_reduce()));
    auto* const graph = user.end_capture(one.stream);
    auto* const exec = user.instantiate(graph);
    const int closed = closes();
    user.free(shared.input);
    if (!seat.meet()) return;
    let_the_janitor_look();
    for (int round = 0; round < 20; ++round) {
      user.replay(exec, one.stream);
      expect_sum(one, 2);
    }
    EXPECT_EQ(closes(), closed);
    if (!seat.meet()) return;
    user.destroy(exec);
    user.destroy(graph);
    while (closes() == closed && !::testing::Test::HasFailure()) std::this_thread::yield();  // the team's limit ends it
  });
}

/// As many as training runs hold: each is right, and a call on it can be captured or is refused with a reason.
TEST(GpuOrders, TwelveCommunicators) {
  in_seats(processes(2), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    std::vector<tuttiComm_t> all{comm};
    for (int i = 1; i < 12; ++i) ASSERT_TRUE(ok(tuttiCommSplit(comm, 0, seat.rank(), &all.emplace_back(), nullptr)));
    int captured = 0;
    for (auto* const each : all) {
      const OneRank one(user, each, seat.rank(), 1000);
      ASSERT_TRUE(ok(one.all_reduce()));
      expect_sum(one, 2);
      user.begin_capture(one.stream);
      const auto made = one.all_reduce();
      auto* const graph = user.end_capture(one.stream);
      if (made == tuttiSuccess) {
        auto* const exec = user.instantiate(graph);
        user.write(one.input, numbers(1000, seat.rank(), 1));
        user.replay(exec, one.stream);
        expect_sum(one, 2, 1);
        user.destroy(exec);
        ++captured;
      } else {
        EXPECT_TRUE(fails(made, tuttiInvalidUsage, "captured"));
      }
      if (graph != nullptr) user.destroy(graph);
    }
    if (seat.rank() == 0) std::printf("%d of 12 communicators: calls can be captured\n", captured);
    EXPECT_GE(captured, 1);
    if (!seat.meet()) return;
    while (all.size() > 1) {
      EXPECT_TRUE(ok(tuttiCommDestroy(all.back())));
      all.pop_back();
    }
  });
}

/// Killed while all ranks replay graphs as fast as they can: the others' kernels end, and each is told who is gone.
TEST(GpuOrders, ARankIsKilledAmongReplays) {
  constexpr int ranks = 4, gone = 2;
  Workers team(processes(ranks, {"TUTTI_DEBUG=NONE"}), [](Seat& seat) {
    CudaUser user(library, choose_gpu(seat, Seating::processes));
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 1000);
    for (int call = 0; call < 5; ++call) ASSERT_TRUE(ok(one.all_reduce()));
    expect_sum(one, ranks);
    user.begin_capture(one.stream);
    ASSERT_TRUE(ok(one.all_reduce()));
    auto* const graph = user.end_capture(one.stream);
    auto* const exec = user.instantiate(graph);
    if (!seat.meet()) return;
    tuttiResult_t told = tuttiSuccess;
    while (told == tuttiSuccess) {
      user.replay(exec, one.stream);
      user.synchronize(one.stream);
      if (::testing::Test::HasFatalFailure()) return;
      seat.board().word(0).fetch_add(1);
      ASSERT_TRUE(ok(tuttiCommGetAsyncError(comm, &told)));
    }
    EXPECT_EQ(told, tuttiRemoteError);
    EXPECT_TRUE(fails(one.all_reduce(), tuttiRemoteError, "rank 2"));
    EXPECT_TRUE(fails(one.all_reduce(), tuttiRemoteError, " lost: its process was killed"));
    user.destroy(exec);
    user.destroy(graph);
    (void)tuttiCommAbort(comm);
    seat.board().word(1).fetch_add(1);
  });
  while (team.board().word(0).load() < 40 * ranks && !::testing::Test::HasFailure()) std::this_thread::yield();
  const auto began = std::chrono::steady_clock::now();
  team.kill(gone);
  EXPECT_TRUE(team.finish());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("all others had ended %.2f s after the kill\n", took.count());
  EXPECT_EQ(team.board().word(1).load(), ranks - 1U);
}

}  // namespace
}  // namespace tutti::testing
