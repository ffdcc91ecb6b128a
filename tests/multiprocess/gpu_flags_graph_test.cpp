// Captured all-reduces by kernels that wait for each other's flags: each replay is one call of every rank.
#include <unistd.h>

#include <array>
#include <thread>

#include "support/gpu_meeting.h"

namespace tutti::testing {
namespace {

constexpr std::size_t count = 300;

/// What a rank's graph is made of, so that it can go in any order.
struct Captured {
  Captured(CudaUser& on, const OneRank& of) : user(on), one(of) {
    user.begin_capture(one.stream);
    EXPECT_TRUE(ok(one.all_reduce()));
    graph = user.end_capture(one.stream);
    EXPECT_NE(graph, nullptr);
    exec = user.instantiate(graph);
  }
  void replay(int ranks, int round) const {
    user.write(one.input, numbers(count, one.rank, round));
    user.replay(exec, one.stream);
    expect_sum(one, ranks, round);
  }
  CudaUser& user;
  const OneRank& one;
  cuda::Graph graph = nullptr;
  cuda::GraphExec exec = nullptr;
};

TEST(GpuFlagsGraph, ThousandReplays) {
  in_seats(team_of(2, Seating::processes), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    const OneRank one(user, comm, seat.rank(), count);
    const Captured captured(user, one);
    EXPECT_EQ(user.get(one.output, 1)[0], -1);  // nothing ran
    const int before = waits_for_host();
    for (int round = 0; round < 1000 && !::testing::Test::HasFatalFailure(); ++round) captured.replay(2, round);
    ASSERT_TRUE(ok(one.all_reduce()));  // and calls go on
    expect_sum(one, 2, 999);
    EXPECT_EQ(waits_for_host(), before);
    user.destroy(captured.exec);
    user.destroy(captured.graph);
  });
}

/// Collectives of several kinds and sizes, in one graph.
TEST(GpuFlagsGraph, OtherCollectives) {
  constexpr std::size_t many = 140'000;
  in_seats(team_of(3, Seating::processes), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    const int rank = seat.rank(), ranks = seat.ranks();
    const OneRank large(user, comm, rank, many);
    auto* const stream = tuttiCudaStream(large.stream);
    const auto none = [&](std::size_t elements) { return user.put(std::vector<std::int32_t>(elements, -1)); };
    std::int32_t *all = none(3 * count), *from_root = none(count), *scattered = none(many / 4), *gathered = none(many);
    user.begin_capture(large.stream);
    EXPECT_TRUE(ok(large.all_reduce()));
    EXPECT_TRUE(ok(tuttiAllGather(large.input, all, count, tuttiInt32, comm, stream)));
    EXPECT_TRUE(ok(tuttiBroadcast(large.input, from_root, count, tuttiInt32, 2, comm, stream)));
    const std::array<std::size_t, 3> counts{5, 0, 7000}, begins{0, 5, 10};
    EXPECT_TRUE(ok(tuttiAllGatherV(large.input, counts[static_cast<std::size_t>(rank)], gathered, counts.data(),
                                   begins.data(), tuttiInt32, comm, stream)));
    EXPECT_TRUE(ok(tuttiReduceScatter(large.output, scattered, many / 4, tuttiInt32, tuttiMax, comm, stream)));
    cuda::Graph graph = user.end_capture(large.stream);
    ASSERT_NE(graph, nullptr);
    cuda::GraphExec exec = user.instantiate(graph);
    const int before = waits_for_host();
    for (int round = 0; round < 20 && !::testing::Test::HasFatalFailure(); ++round) {
      user.write(large.input, numbers(many, rank, round));
      user.replay(exec, large.stream);
      expect_sum(large, ranks, round);
      for (int other = 0; other < ranks; ++other)
        ASSERT_EQ(user.get(all + static_cast<std::size_t>(other) * count, count), numbers(count, other, round));
      ASSERT_EQ(user.get(from_root, count), numbers(count, 2, round));
      for (std::size_t other = 0; other < counts.size(); ++other) {
        auto sent = numbers(counts[other], static_cast<int>(other), round);
        ASSERT_EQ(user.get(gathered + begins[other], counts[other]), sent);
      }
      const auto sum = sums(many, ranks, round);
      const auto begin = sum.begin() + rank * static_cast<std::ptrdiff_t>(many / 4);
      ASSERT_EQ(user.get(scattered, many / 4), std::vector<std::int32_t>(begin, begin + many / 4));
    }
    EXPECT_EQ(waits_for_host(), before);
    user.destroy(exec);
    user.destroy(graph);
  });
}

/// One rank replays what others call each time.
TEST(GpuFlagsGraph, ReplaysMeetCalls) {
  in_seats(team_of(3, Seating::processes), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    const OneRank one(user, comm, seat.rank(), count);
    const Captured captured(user, one);
    for (int round = 0; round < 20; ++round) {
      if (round % 3 == seat.rank()) {
        captured.replay(3, round);
        continue;
      }
      user.write(one.input, numbers(count, seat.rank(), round));
      ASSERT_TRUE(ok(one.all_reduce()));
      expect_sum(one, 3, round);
    }
    user.destroy(captured.exec);
    user.destroy(captured.graph);
  });
}

/// Graphs work as long as those of all ranks exist, whatever else is gone.
TEST(GpuFlagsGraph, AnyOrderOfDestruction) {
  for (const char* const order : {"cge", "gce", "gec", "egc"})
    launch_ranks(team_of(2, Seating::processes), [order](Seat& seat) {
      auto& fake = fake_cuda(library);
      CudaUser user(library, choose_gpu(seat, Seating::processes));
      const auto before = fake.live();
      {
        CudaUser own(library);
        auto* const comm = seat.init_one();
        ASSERT_NE(comm, nullptr);
        const OneRank one(own, comm, seat.rank(), count);
        const Captured captured(own, one);
        bool lives = true;
        for (const char* next = order; *next != 0; ++next) {
          if (lives)
            for (int round = 0; round < 3; ++round) captured.replay(2, round);
          if (!seat.meet()) return;
          switch (*next) {
            case 'c': EXPECT_TRUE(ok(tuttiCommDestroy(comm))); break;
            case 'g': own.destroy(captured.graph); break;
            default: own.destroy(captured.exec); lives = false;
          }
          if (!seat.meet()) return;
        }
        // What graphs kept is given back by whoever is next.
        tuttiComm_t last = nullptr;
        ASSERT_TRUE(ok(tuttiCommInitAll(&last, 1, nullptr)));
        EXPECT_TRUE(ok(tuttiCommDestroy(last)));
      }
      user.make_current();
      EXPECT_EQ(fake.live(), before);
    });
}

/// The communicator is destroyed, and a rank's process ends: the other's replays end, too.
TEST(GpuFlagsGraph, ReplaysWhosePeerHasGone) {
  Workers team(team_of(2, Seating::processes, {"TUTTI_DEBUG=NONE"}), [](Seat& seat) {
    CudaUser user(library, choose_gpu(seat, Seating::processes));
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), count);
    const Captured captured(user, one);
    captured.replay(2, 1);
    if (!seat.meet()) return;
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    if (seat.rank() == 1) {
      seat.board().raise(0, 1);
      for (;;) ::pause();
    }
    user.replay(captured.exec, one.stream);
    seat.board().raise(1, 1);
    user.synchronize(one.stream);  // five seconds
    user.replay(captured.exec, one.stream);
    user.synchronize(one.stream);
    user.destroy(captured.exec);
    user.destroy(captured.graph);
  });
  for (const int word : {0, 1})
    while (team.board().word(word).load() < 1 && !::testing::Test::HasFailure()) std::this_thread::yield();
  team.kill(1);
  EXPECT_TRUE(team.finish());
}

}  // namespace
}  // namespace tutti::testing
