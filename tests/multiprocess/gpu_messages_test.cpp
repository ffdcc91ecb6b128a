// Sends and receives by kernels that meet those of other processes and GPUs.
#include <array>
#include <csignal>

#include "support/gpu_meeting.h"
#include "support/random.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

const std::vector<std::string> silent = {"TUTTI_DEBUG=NONE"};

/// Messages of a rank, and what is to arrive.
struct Mail {
  CudaUser& user;
  tuttiComm_t comm;
  struct Arrival {
    std::int32_t* at;
    std::vector<std::int32_t> wanted;
  };
  std::vector<Arrival> arrivals = {};

  void send(int from, int to, std::size_t count, int round, cuda::Stream stream) {
    auto* const sent = user.put(numbers(count + 1, 10 * from + to, round));
    ASSERT_TRUE(ok(tuttiSend(sent, count, tuttiInt32, to, comm, tuttiCudaStream(stream))));
  }
  void receive(int from, int to, std::size_t count, int round, cuda::Stream stream) {
    auto wanted = numbers(count + 1, 10 * from + to, round);
    wanted.back() = -1;
    arrivals.push_back({user.put(std::vector<std::int32_t>(count + 1, -1)), std::move(wanted)});
    ASSERT_TRUE(ok(tuttiRecv(arrivals.back().at, count, tuttiInt32, from, comm, tuttiCudaStream(stream))));
  }
  void check() {
    for (const Arrival& one : arrivals) ASSERT_EQ(user.get(one.at, one.wanted.size()), one.wanted);
    arrivals.clear();
  }
};

using Where = std::tuple<int, Seating>;
class GpuMessages : public ::testing::TestWithParam<Where> {};
INSTANTIATE_TEST_SUITE_P(Teams, GpuMessages,
                         ::testing::Values(Where{2, Seating::processes}, Where{3, Seating::processes},
                                           Where{8, Seating::processes}, Where{3, Seating::threads},
                                           Where{4, Seating::pairs}, Where{3, Seating::apart}),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "_" + name(std::get<1>(test.param));
                         });

/// Groups of messages between any ranks, also of one to itself, of nothing, and longer than all slots.
TEST_P(GpuMessages, OfAnyRanksAndSizesInGroups) {
  const auto [number, seating] = GetParam();
  in_seats(team_of(number, seating), seating, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    const int before = waits_for_host();
    auto* const stream = user.stream();
    Mail mail{user, comm};
    for (int round = 0; round < std::max(4, share_of(12)); ++round) {
      Random random(static_cast<std::uint64_t>(round) + 1);  // the same on all ranks
      seat.doing("round " + std::to_string(round));
      ASSERT_TRUE(ok(tuttiGroupStart()));
      for (int i = random.between(1, 4 * seat.ranks()); i > 0; --i) {
        const int from = random.below(seat.ranks()), to = random.below(seat.ranks());
        const std::size_t count = random.chance(10)  ? 0
                                  : random.chance(5) ? 300'001
                                                     : static_cast<std::size_t>(random.below(9000));
        if (seat.rank() == from) mail.send(from, to, count, round, stream);
        if (seat.rank() == to) mail.receive(from, to, count, round, stream);
      }
      ASSERT_TRUE(ok(tuttiGroupEnd()));
      user.synchronize(stream);
      mail.check();
    }
    EXPECT_EQ(waits_for_host(), before);
  });
}

/// What fits the slots waits for no receiver, so two ranks may send to each other first.
TEST_P(GpuMessages, OneAfterAnotherAndBesideCollectives) {
  const auto [number, seating] = GetParam();
  in_seats(team_of(number, seating), seating, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    const int before = waits_for_host(), right = (seat.rank() + 1) % seat.ranks();
    const int left = (seat.rank() + seat.ranks() - 1) % seat.ranks();
    const OneRank small(user, comm, seat.rank(), 100), large(user, comm, seat.rank(), 40'000);
    Mail mail{user, comm};
    for (int round = 0; round < 5; ++round) {
      mail.send(seat.rank(), right, 1000, round, small.stream);
      ASSERT_TRUE(ok(small.all_reduce()));
      mail.send(seat.rank(), right, 2000, round, large.stream);
      mail.receive(left, seat.rank(), 1000, round, small.stream);
      ASSERT_TRUE(ok(large.all_reduce()));
      mail.receive(left, seat.rank(), 2000, round, large.stream);
      ASSERT_TRUE(ok(tuttiGroupStart()));  // in any order
      if (seat.rank() % 2 == 0) mail.send(seat.rank(), right, 300'000, round, small.stream);
      ASSERT_TRUE(ok(small.all_reduce()));
      if (seat.rank() % 2 != 0) mail.send(seat.rank(), right, 300'000, round, large.stream);
      mail.receive(left, seat.rank(), 300'000, round, large.stream);
      ASSERT_TRUE(ok(tuttiGroupEnd()));
      for (auto* const stream : {small.stream, large.stream}) user.synchronize(stream);
      mail.check();
      expect_sum(small, seat.ranks());
      expect_sum(large, seat.ranks());
    }
    EXPECT_EQ(waits_for_host(), before);
  });
}

/// Messages longer than the slots, in opposite directions and named in opposite orders, on one stream of each rank.
TEST(GpuMessagesOfAGroup, OfSeveralCommunicators) {
  in_seats(team_of(2, Seating::processes), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t first) {
    auto* const second = seat.init_one();
    ASSERT_NE(second, nullptr);
    constexpr std::size_t count = 1'000'000;
    auto* const stream = user.stream();
    for (int round = 0; round < 3; ++round) {
      Mail mine{user, seat.rank() == 0 ? first : second}, theirs{user, seat.rank() == 0 ? second : first};
      ASSERT_TRUE(ok(tuttiGroupStart()));
      mine.send(seat.rank(), 1 - seat.rank(), count, round, stream);
      theirs.receive(1 - seat.rank(), seat.rank(), count, round, stream);
      ASSERT_TRUE(ok(tuttiGroupEnd()));
      user.synchronize(stream);
      theirs.check();
    }
    if (!seat.meet()) return;
    EXPECT_TRUE(ok(tuttiCommDestroy(second)));
  });
}

/// More than the arguments of a kernel hold.
TEST(GpuMessagesOfAGroup, Many) {
  in_seats(team_of(2, Seating::processes), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    const int before = waits_for_host();
    auto* const stream = user.stream();
    Mail mail{user, comm};
    for (int round = 0; round < 20; ++round) {
      const int count = round % 10 == 9 ? 1000 : 100;
      ASSERT_TRUE(ok(tuttiGroupStart()));
      for (int i = 0; i < count; ++i) {
        mail.send(seat.rank(), 1 - seat.rank(), static_cast<std::size_t>(i), i, stream);
        mail.receive(1 - seat.rank(), seat.rank(), static_cast<std::size_t>(i), i, stream);
      }
      ASSERT_TRUE(ok(tuttiGroupEnd()));
    }
    user.synchronize(stream);
    mail.check();
    EXPECT_EQ(waits_for_host(), before);
  });
}

/// Each replay sends again.
TEST(GpuMessagesInAGraph, AreSentByEachReplay) {
  in_seats(team_of(3, Seating::processes), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    constexpr std::size_t count = 30'000;
    const int right = (seat.rank() + 1) % 3, left = (seat.rank() + 2) % 3;
    const OneRank one(user, comm, seat.rank(), count);
    auto* const stream = tuttiCudaStream(one.stream);
    auto* const again = user.put(std::vector<std::int32_t>(count, -1));
    user.begin_capture(one.stream);
    EXPECT_TRUE(ok(tuttiGroupStart()));
    EXPECT_TRUE(ok(tuttiSend(one.input, count, tuttiInt32, right, comm, stream)));
    EXPECT_TRUE(ok(tuttiRecv(one.output, count, tuttiInt32, left, comm, stream)));
    EXPECT_TRUE(ok(tuttiGroupEnd()));
    EXPECT_TRUE(ok(tuttiSend(one.output, 100, tuttiInt32, right, comm, stream)));
    EXPECT_TRUE(ok(tuttiRecv(again, 100, tuttiInt32, left, comm, stream)));
    cuda::Graph graph = user.end_capture(one.stream);
    ASSERT_NE(graph, nullptr);
    cuda::GraphExec exec = user.instantiate(graph);
    for (int round = 0; round < 100 && !::testing::Test::HasFatalFailure(); ++round) {
      user.write(one.input, numbers(count, seat.rank(), round));
      user.replay(exec, one.stream);
      user.synchronize(one.stream);
      ASSERT_EQ(user.get(one.output, count), numbers(count, left, round));
      ASSERT_EQ(user.get(again, 100), numbers(100, right, round));
    }
    user.destroy(exec);
    user.destroy(graph);
  });
}

/// The communicator is destroyed, and the sender has ended after its last replay.
TEST(GpuMessagesInAGraph, AreReceivedWhenTheSenderHasGone) {
  Workers team(team_of(2, Seating::processes, silent), [](Seat& seat) {
    CudaUser user(library, choose_gpu(seat, Seating::processes));
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 100);
    auto* const stream = tuttiCudaStream(one.stream);
    user.begin_capture(one.stream);
    EXPECT_TRUE(ok(seat.rank() == 1 ? tuttiSend(one.input, 100, tuttiInt32, 0, comm, stream)
                                    : tuttiRecv(one.output, 100, tuttiInt32, 1, comm, stream)));
    cuda::Graph graph = user.end_capture(one.stream);
    ASSERT_NE(graph, nullptr);
    cuda::GraphExec exec = user.instantiate(graph);
    if (!seat.meet()) return;
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    if (seat.rank() == 1) {
      user.replay(exec, one.stream);
      user.synchronize(one.stream);
      seat.board().raise(0, 1);
      for (;;) ::pause();
    }
    ASSERT_TRUE(seat.board().wait_for(1, 1));
    user.replay(exec, one.stream);
    user.synchronize(one.stream);
    EXPECT_EQ(user.get(one.output, 100), numbers(100, 1));
    user.destroy(exec);
    user.destroy(graph);
  });
  while (team.board().word(0).load() < 1 && !::testing::Test::HasFailure()) std::this_thread::yield();
  team.kill(1);
  team.board().raise(1, 1);
  EXPECT_TRUE(team.finish());
}

/// Ranks that share a GPU and a process are launched together, which messages are not: they go through the host.
TEST(GpuMessagesOfRanksThatShareAGpu, GoThroughTheHost) {
  in_seats(team_of(4, Seating::pairs_on_a_gpu), Seating::pairs_on_a_gpu,
           [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
             const int before = waits_for_host(), right = (seat.rank() + 1) % 4, left = (seat.rank() + 3) % 4;
             auto* const stream = user.stream();
             Mail mail{user, comm};
             ASSERT_TRUE(ok(tuttiGroupStart()));
             mail.send(seat.rank(), right, 1000, 1, stream);
             mail.receive(left, seat.rank(), 1000, 1, stream);
             ASSERT_TRUE(ok(tuttiGroupEnd()));
             user.synchronize(stream);
             mail.check();
             EXPECT_GT(waits_for_host(), before);
           });
}

// ---- What goes wrong ----

struct Wrong {
  const char* text;
  std::size_t count;  ///< that is received, of 100 float32 that are sent
  tuttiDataType_t type;
  bool on_host;
  const char* words;
};
const Wrong wrongs[] = {
    {"Count", 101, tuttiFloat32, false, "rank 0 sends 100 x float32, but rank 1 receives 101 x float32"},
    {"Type", 100, tuttiInt32, false, "rank 0 sends 100 x float32, but rank 1 receives 100 x int32"},
    {"Memory", 100, tuttiFloat32, true,
     "message 1 from rank 0 to rank 1 is sent from device memory and received into host memory"}};

class GpuMessagesWrong : public ::testing::TestWithParam<Wrong> {};
INSTANTIATE_TEST_SUITE_P(Calls, GpuMessagesWrong, ::testing::ValuesIn(wrongs),
                         [](const auto& test) { return test.param.text; });

TEST_P(GpuMessagesWrong, IsToldOnEveryRank) {
  const Wrong wrong = GetParam();
  launch_ranks(team_of(3, Seating::processes, silent), [&wrong](Seat& seat) {
    CudaUser user(library, choose_gpu(seat, Seating::processes));
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 200);
    auto* const stream = tuttiCudaStream(one.stream);
    std::vector<float> host(200);
    if (seat.rank() == 0) (void)tuttiSend(one.input, 100, tuttiFloat32, 1, comm, stream);
    if (seat.rank() == 1 && wrong.on_host) (void)tuttiRecv(host.data(), 100, tuttiFloat32, 0, comm, nullptr);
    if (seat.rank() == 1 && !wrong.on_host) (void)tuttiRecv(one.output, wrong.count, wrong.type, 0, comm, stream);
    EXPECT_EQ(await_error(comm), tuttiInvalidUsage);
    EXPECT_TRUE(fails(one.all_reduce(), tuttiInvalidUsage, wrong.words));
    user.synchronize(one.stream);
    EXPECT_EQ(user.get(one.output, 200), std::vector<std::int32_t>(200, -1));
    if (!seat.meet()) return;
    (void)tuttiCommAbort(comm);
  });
}

/// The error is that of the first call, whatever follows on the stream.
TEST(GpuMessagesWrong, IsToldThoughMoreCallsAreQueued) {
  launch_ranks(team_of(2, Seating::processes, silent), [](Seat& seat) {
    CudaUser user(library, choose_gpu(seat, Seating::processes));
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 200);
    auto* const stream = tuttiCudaStream(one.stream);
    fake_cuda(library).hold();
    for (const std::size_t count : {100u, 150u, 100u}) {
      if (seat.rank() == 0) (void)tuttiSend(one.input, count, tuttiInt32, 1, comm, stream);
      if (seat.rank() == 1) (void)tuttiRecv(one.output, count == 100 ? 101 : 100, tuttiInt32, 0, comm, stream);
    }
    (void)one.all_reduce();
    fake_cuda(library).release();
    EXPECT_EQ(await_error(comm), tuttiInvalidUsage);
    EXPECT_TRUE(
        fails(one.all_reduce(), tuttiInvalidUsage, "rank 0 sends 100 x int32, but rank 1 receives 101 x int32"));
    user.synchronize(one.stream);
    if (!seat.meet()) return;
    (void)tuttiCommAbort(comm);
  });
}

/// A rank whose sends to itself have no receives.
TEST(GpuMessagesWrong, ToItself) {
  in_seats(team_of(2, Seating::processes, silent), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t) {
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 10);
    EXPECT_TRUE(fails(tuttiSend(one.input, 10, tuttiInt32, seat.rank(), comm, tuttiCudaStream(one.stream)),
                      tuttiInvalidUsage, "a group has 1 sends to this rank itself but 0 receives from it"));
    if (!seat.meet()) return;
    (void)tuttiCommAbort(comm);
  });
}

/// Killed while kernels wait for it: those end, and say what they waited for.
TEST(GpuMessagesDeath, OfAPeer) {
  Workers team(team_of(3, Seating::processes, silent), [](Seat& seat) {
    CudaUser user(library, choose_gpu(seat, Seating::processes));
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 1'000'000);
    if (!seat.meet()) return;
    if (seat.rank() == 2) {
      for (;;) ::pause();
    }
    const bool sends = seat.rank() == 0;
    ASSERT_TRUE(ok(sends ? tuttiSend(one.input, one.count, tuttiInt32, 2, comm, tuttiCudaStream(one.stream))
                         : tuttiRecv(one.output, one.count, tuttiInt32, 2, comm, tuttiCudaStream(one.stream))));
    seat.board().word(0).fetch_add(1);
    user.synchronize(one.stream);
    EXPECT_EQ(await_error(comm), tuttiRemoteError);
    EXPECT_TRUE(fails(one.all_reduce(), tuttiRemoteError, " lost: its process was killed"));
    const std::string waited = tuttiGetLastError(comm);
    EXPECT_NE(waited.find("gave up while it waited for rank 2 on channel"), std::string::npos) << waited;
    EXPECT_NE(waited.find(sends ? "to receive tile" : "to send tile"), std::string::npos) << waited;
    EXPECT_TRUE(ok(tuttiCommAbort(comm)));
  });
  while (team.board().word(0).load() < 2 && !::testing::Test::HasFailure()) std::this_thread::yield();
  team.kill(2);
  EXPECT_TRUE(team.finish());
}

/// A peer that does not come in time.
TEST(GpuMessagesDeath, TheLimitOfACall) {
  launch_ranks(team_of(2, Seating::processes, {"TUTTI_DEBUG=NONE", "TUTTI_TIMEOUT_MS=200"}), [](Seat& seat) {
    CudaUser user(library, choose_gpu(seat, Seating::processes));
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 10);
    if (seat.rank() == 0) {
      ASSERT_TRUE(ok(tuttiRecv(one.output, 10, tuttiInt32, 1, comm, tuttiCudaStream(one.stream))));
      user.synchronize(one.stream);
      EXPECT_EQ(await_error(comm), tuttiTimeout);
      EXPECT_TRUE(fails(one.all_reduce(), tuttiTimeout, "to send tile 0 of a message: nothing came for 200 ms"));
    }
    if (!seat.meet()) return;
    (void)tuttiCommAbort(comm);
  });
}

}  // namespace
}  // namespace tutti::testing
