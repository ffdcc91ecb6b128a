// Large calls by kernels that wait for each other: through windows where all ranks have mapped the buffers, else slots.
#include <array>
#include <atomic>

#include "support/gpu_meeting.h"

namespace tutti::testing {
namespace {

constexpr std::size_t count = 140'000;  // 560 KB: windows may be used

/// What the kernels of this process did last, by rank.
struct Seen {
  std::atomic<bool> offered{false};   ///< the rank offered both buffers
  std::atomic<bool> by_slots{false};  ///< it has sent messages through slots
};
std::array<Seen, 8> seen;

std::uint64_t messages(const device::Call& call, const device::RankCall& rank) {
  std::uint64_t sum = 0;
  for (std::uint32_t link = 0; link < call.channels * call.ranks; ++link)
    sum += rank.links[link].committed + rank.links[link].released;
  return sum;
}

FakeKernel watched() {
  return [](const std::string& name, const std::byte* argument, unsigned, unsigned) {
    device::Call call;
    std::memcpy(&call, argument, sizeof call);
    std::array<std::uint64_t, device::local_ranks_max> before{};
    for (std::uint32_t i = 0; i < call.local_ranks; ++i) before[i] = messages(call, call.local[i]);
    EXPECT_TRUE(launch_by_name(name, call));
    for (std::uint32_t i = 0; i < call.local_ranks; ++i) {
      Seen& one = seen[call.local[i].rank];
      const device::ByWindows& other = call.by_windows[i];
      one.offered = call.choose != 0 && other.input != device::Offer::none && other.output != device::Offer::none;
      one.by_slots = messages(call, call.local[i]) != before[i];
    }
    return 0;
  };
}

/// As in_seats, with watched kernels.
void in_watched_seats(const Team& team, Seating seating, const MeetingBody& body) {
  in_seats(team, seating, body, watched);
}

/// Makes calls on the same buffers until all ranks offer them. False: the test is over.
bool until_offered(Seat& seat, const OneRank& one) {
  for (;;) {
    EXPECT_TRUE(ok(one.all_reduce()));
    expect_sum(one, seat.ranks());
    const auto rank = static_cast<std::size_t>(seat.rank());
    seat.board().word(rank).store(seen[rank].offered ? 1 : 0);
    if (!seat.meet()) return false;
    bool all = true;
    for (int other = 0; other < seat.ranks(); ++other)
      all = all && seat.board().word(static_cast<std::size_t>(other)).load() == 1;
    if (!seat.meet()) return false;
    if (all || ::testing::Test::HasFailure()) return true;
  }
}

const Seen& own(const Seat& seat) {
  return seen[static_cast<std::size_t>(seat.rank())];
}

/// Calls that fit the inboxes offer nothing, though larger ones do.
TEST(GpuWindows, CallsThroughInboxesOfferNothing) {
  in_watched_seats(team_of(2, Seating::processes), Seating::processes,
                   [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
                     const OneRank one(user, comm, seat.rank(), count);
                     if (!until_offered(seat, one)) return;
                     const OneRank small(user, comm, seat.rank(), 131'071);
                     ASSERT_TRUE(ok(small.all_reduce()));
                     expect_sum(small, 2);
                     EXPECT_FALSE(own(seat).offered);
                     const char* algorithm = nullptr;
                     const char* transport = nullptr;
                     ASSERT_TRUE(ok(tuttiCommLastAlgorithm(comm, &algorithm, &transport)));
                     EXPECT_STREQ(algorithm, "one_shot");
                   });
}

using Where = std::tuple<int, Seating>;
class GpuWindows : public ::testing::TestWithParam<Where> {};
INSTANTIATE_TEST_SUITE_P(Teams, GpuWindows,
                         ::testing::Values(Where{2, Seating::processes}, Where{3, Seating::processes},
                                           Where{8, Seating::processes}, Where{3, Seating::threads},
                                           Where{5, Seating::pairs}, Where{4, Seating::pairs_on_a_gpu},
                                           Where{3, Seating::apart}),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "_" + name(std::get<1>(test.param));
                         });

TEST_P(GpuWindows, AreUsedOnceAllHaveMappedTheBuffers) {
  const auto [number, seating] = GetParam();
  in_watched_seats(team_of(number, seating), seating, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    const OneRank one(user, comm, seat.rank(), count);
    if (!until_offered(seat, one)) return;
    for (int round = 0; round < 5; ++round) {
      user.write(one.input, numbers(count, seat.rank(), round));
      ASSERT_TRUE(ok(one.all_reduce()));
      expect_sum(one, seat.ranks(), round);
      EXPECT_TRUE(own(seat).offered);
      EXPECT_FALSE(own(seat).by_slots);
      if (!seat.meet()) return;
    }
  });
}

/// Memory of one rank that nobody can map sends all ranks to slots, although the others offer theirs.
TEST(GpuWindows, OneRanksBufferIsNotMapped) {
  in_watched_seats(team_of(3, Seating::processes), Seating::processes,
                   [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
                     const OneRank open(user, comm, seat.rank(), count);
                     if (!until_offered(seat, open)) return;
                     user.allocate_pooled(seat.rank() == 1);
                     const OneRank closed(user, comm, seat.rank(), count);
                     const OneRank& one = seat.rank() == 1 ? closed : open;
                     ASSERT_TRUE(ok(one.all_reduce()));
                     const int exported = fake_cuda(library).calls("cuIpcGetMemHandle");
                     for (int round = 0; round < 3; ++round) {
                       user.write(one.input, numbers(count, seat.rank(), round));
                       ASSERT_TRUE(ok(one.all_reduce()));
                       expect_sum(one, 3, round);
                       EXPECT_EQ(own(seat).offered, seat.rank() != 1);
                       EXPECT_TRUE(own(seat).by_slots);
                       if (!seat.meet()) return;
                     }
                     EXPECT_EQ(fake_cuda(library).calls("cuIpcGetMemHandle"), exported) << "asked for once";
                     user.write(open.input, numbers(count, seat.rank()));
                     ASSERT_TRUE(ok(open.all_reduce()));  // and windows again
                     expect_sum(open, 3);
                     EXPECT_FALSE(own(seat).by_slots);
                   });
}

/// What its owner has freed is unmapped soon, while calls go on.
TEST(GpuWindows, FreedMemoryIsUnmapped) {
  in_watched_seats(
      team_of(2, Seating::processes), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
        auto& fake = fake_cuda(library);
        const OneRank one(user, comm, seat.rank(), count);
        if (!until_offered(seat, one)) return;
        const int mapped = fake.live().mapped;
        if (!seat.meet()) return;  // nobody has offered more yet
        const OneRank other(user, comm, seat.rank(), count);
        if (!until_offered(seat, other)) return;
        EXPECT_EQ(fake.live().mapped, mapped + 2);
        user.free(other.input);
        user.free(other.output);
        while (!::testing::Test::HasFailure()) {
          ASSERT_TRUE(ok(one.all_reduce()));
          expect_sum(one, 2);
          seat.board().word(static_cast<std::size_t>(seat.rank())).store(fake.live().mapped == mapped ? 2 : 1);
          if (!seat.meet()) return;
          if (seat.board().word(0).load() == 2 && seat.board().word(1).load() == 2) break;
          if (!seat.meet()) return;
        }
        EXPECT_FALSE(own(seat).by_slots);
      });
}

/// A captured call keeps its windows, whatever other memory comes and goes; and a graph that was captured before all
/// had mapped the buffers goes through slots for ever.
TEST(GpuWindows, InAGraph) {
  in_watched_seats(team_of(2, Seating::processes), Seating::processes,
                   [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
                     const OneRank one(user, comm, seat.rank(), count);
                     const auto captured = [&] {
                       user.begin_capture(one.stream);
                       EXPECT_TRUE(ok(one.all_reduce()));
                       cuda::Graph graph = user.end_capture(one.stream);
                       cuda::GraphExec exec = user.instantiate(graph);
                       user.destroy(graph);
                       return exec;
                     };
                     cuda::GraphExec early = captured();
                     if (!until_offered(seat, one)) return;
                     cuda::GraphExec late = captured();
                     if (!seat.meet()) return;
                     for (int round = 0; round < 20; ++round) {
                       {
                         const OneRank passing(user, comm, seat.rank(), count);
                         ASSERT_TRUE(ok(passing.all_reduce()));
                         expect_sum(passing, 2);
                         user.free(passing.input);
                         user.free(passing.output);
                       }
                       for (auto* const exec : {early, late}) {
                         user.write(one.input, numbers(count, seat.rank(), round));
                         user.replay(exec, one.stream);
                         expect_sum(one, 2, round);
                         EXPECT_EQ(own(seat).by_slots, exec == early);
                         if (!seat.meet()) return;
                       }
                     }
                     user.destroy(early);
                     user.destroy(late);
                   });
}

/// A graph works through windows when its communicators are destroyed, as long as those of all ranks exist.
TEST(GpuWindows, AGraphOutlivesItsCommunicator) {
  launch_ranks(team_of(2, Seating::processes), [](Seat& seat) {
    auto& fake = fake_cuda(library);
    CudaUser user(library, choose_gpu(seat, Seating::processes, watched()));
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), count);
    if (!until_offered(seat, one)) return;
    user.begin_capture(one.stream);
    EXPECT_TRUE(ok(one.all_reduce()));
    cuda::Graph graph = user.end_capture(one.stream);
    cuda::GraphExec exec = user.instantiate(graph);
    user.destroy(graph);
    if (!seat.meet()) return;
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    for (int round = 0; round < 10; ++round) {
      user.write(one.input, numbers(count, seat.rank(), round));
      user.replay(exec, one.stream);
      expect_sum(one, 2, round);
      EXPECT_FALSE(own(seat).by_slots);
    }
    if (!seat.meet()) return;
    user.destroy(exec);
    tuttiComm_t last = nullptr;  // whoever is next gives back what the graph kept
    ASSERT_TRUE(ok(tuttiCommInitAll(&last, 1, nullptr)));
    EXPECT_TRUE(ok(tuttiCommDestroy(last)));
    EXPECT_EQ(fake.live().mapped, 0);
    EXPECT_EQ(fake.live().misuse, 0);
  });
}

/// Collectives of all kinds, once windows are used and before.
TEST(GpuWindows, OtherCollectives) {
  in_watched_seats(
      team_of(4, Seating::processes), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
        const int rank = seat.rank(), ranks = seat.ranks();
        const OneRank one(user, comm, rank, 4 * count);
        auto* const stream = tuttiCudaStream(one.stream);
        auto* const all = user.put(std::vector<std::int32_t>(4 * count, -1));
        bool used = false;
        for (int round = 0; !used || round < 10; ++round) {
          const int root = round % ranks;
          user.write(one.input, numbers(4 * count, rank, round));
          ASSERT_TRUE(ok(tuttiAllGather(one.input, all, count, tuttiInt32, comm, stream)));
          user.synchronize(one.stream);
          const bool gathered_by_slots = own(seat).by_slots;
          for (int other = 0; other < ranks; ++other)
            ASSERT_EQ(user.get(all + static_cast<std::size_t>(other) * count, count), numbers(count, other, round));
          ASSERT_TRUE(ok(tuttiBroadcast(one.input, all, 4 * count, tuttiInt32, root, comm, stream)));
          user.synchronize(one.stream);
          ASSERT_EQ(user.get(all, 4 * count), numbers(4 * count, root, round));
          ASSERT_TRUE(ok(tuttiReduceScatter(one.input, all, count, tuttiInt32, tuttiSum, comm, stream)));
          user.synchronize(one.stream);
          const auto sum = sums(4 * count, ranks, round);
          const auto begin = sum.begin() + rank * static_cast<std::ptrdiff_t>(count);
          ASSERT_EQ(user.get(all, count), std::vector<std::int32_t>(begin, begin + count));
          ASSERT_TRUE(ok(tuttiAllToAll(one.input, all, count, tuttiInt32, comm, stream)));
          user.synchronize(one.stream);
          for (int other = 0; other < ranks; ++other) {
            const auto sent = numbers(4 * count, other, round);
            const auto block = sent.begin() + rank * static_cast<std::ptrdiff_t>(count);
            ASSERT_EQ(user.get(all + static_cast<std::size_t>(other) * count, count),
                      std::vector<std::int32_t>(block, block + count));
          }
          seat.board().word(static_cast<std::size_t>(rank)).store(gathered_by_slots ? 1 : 2);
          if (!seat.meet()) return;
          used = true;
          for (int other = 0; other < ranks; ++other)
            used = used && seat.board().word(static_cast<std::size_t>(other)).load() == 2;
          if (!seat.meet()) return;
        }
      });
}

}  // namespace
}  // namespace tutti::testing
