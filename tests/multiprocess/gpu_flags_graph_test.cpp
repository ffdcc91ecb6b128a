// Captured all-reduces by kernels that wait for each other's flags: each replay is one call of every rank.
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

}  // namespace
}  // namespace tutti::testing
