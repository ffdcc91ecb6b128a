// What goes wrong between kernels that wait for each other's flags: calls that differ, ranks that are gone.
#include <array>
#include <csignal>
#include <functional>
#include <thread>

#include "kernels/image.h"
#include "support/gpu_meeting.h"
#include "support/host_bodies.h"
#include "support/thread_block.h"

namespace tutti::testing {
namespace {

const std::vector<std::string> silent = {"TUTTI_DEBUG=NONE"};

// ---- Calls that differ ----

struct Wrong {
  const char* text;
  std::size_t count;
  tuttiDataType_t type;
  tuttiRedOp_t op;
  const char* words;  ///< of the call that differs
  bool broadcast = false;
};
const Wrong wrongs[] = {
    {"Count", 101, tuttiInt32, tuttiSum, "AllReduce count=101 int32 sum"},
    {"ALargeCount", 16'000, tuttiInt32, tuttiSum, "AllReduce count=16000 int32 sum"},
    {"ACountForAnotherKernel", 40'000, tuttiInt32, tuttiSum, "AllReduce count=40000 int32 sum"},
    {"Type", 100, tuttiFloat32, tuttiSum, "AllReduce count=100 float32 sum"},
    {"Operator", 100, tuttiInt32, tuttiMax, "AllReduce count=100 int32 max"},
    {"Collective", 100, tuttiInt32, tuttiSum, "Broadcast count=100 int32 root=2", /*broadcast=*/true}};

class GpuFlagsMismatch : public ::testing::TestWithParam<Wrong> {};
INSTANTIATE_TEST_SUITE_P(Calls, GpuFlagsMismatch, ::testing::ValuesIn(wrongs),
                         [](const auto& test) { return test.param.text; });

/// The kernels end by themselves, nothing is written, and every rank is told both calls.
TEST_P(GpuFlagsMismatch, IsToldOnEveryRank) {
  const Wrong wrong = GetParam();
  launch_ranks(team_of(3, Seating::processes, silent), [&wrong](Seat& seat) {
    CudaUser user(library, choose_gpu(seat, Seating::processes));
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 40'000);
    auto* const stream = tuttiCudaStream(one.stream);
    const bool differs = seat.rank() == 1;
    const auto made =
        differs && wrong.broadcast
            ? tuttiBroadcast(one.input, one.output, wrong.count, wrong.type, 2, comm, stream)
            : tuttiAllReduce(one.input, one.output, differs ? wrong.count : 100, differs ? wrong.type : tuttiInt32,
                             differs ? wrong.op : tuttiSum, comm, stream);
    EXPECT_TRUE(made == tuttiSuccess || made == tuttiInvalidUsage) << made;  // the others have found out already
    user.synchronize(one.stream);
    EXPECT_EQ(user.get(one.output, 100), std::vector<std::int32_t>(100, -1));
    EXPECT_EQ(await_error(comm), tuttiInvalidUsage);
    for (const char* const words : {"ranks make different calls", wrong.words, "AllReduce count=100 int32 sum"})
      EXPECT_TRUE(fails(one.all_reduce(), tuttiInvalidUsage, words));
    if (!seat.meet()) return;
    (void)tuttiCommAbort(comm);
  });
}

/// One rank expects more of another than that sends: nothing is written, and every rank learns of both counts.
TEST(GpuFlagsCounts, OfTwoRanksDiffer) {
  launch_ranks(team_of(3, Seating::processes, silent), [](Seat& seat) {
    CudaUser user(library, choose_gpu(seat, Seating::processes));
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 100);
    std::array<std::size_t, 3> counts{10, 20, 30};
    if (seat.rank() == 2) counts[1] = 21;
    const std::array<std::size_t, 3> begins{0, 10, 40};
    const std::size_t sent = seat.rank() == 1 ? 20 : counts[static_cast<std::size_t>(seat.rank())];
    const auto made = tuttiAllGatherV(one.input, sent, one.output, counts.data(), begins.data(), tuttiInt32, comm,
                                      tuttiCudaStream(one.stream));
    EXPECT_TRUE(made == tuttiSuccess || made == tuttiInvalidUsage) << made;  // the others have found out already
    user.synchronize(one.stream);
    EXPECT_EQ(await_error(comm), tuttiInvalidUsage);
    EXPECT_TRUE(fails(one.all_reduce(), tuttiInvalidUsage, "rank 1 sends 80 bytes to rank 2, which expects 84"));
    if (!seat.meet()) return;
    (void)tuttiCommAbort(comm);
  });
}

/// Although only the last slice of the block does.
TEST(GpuFlagsCounts, OfALargeReductionDiffer) {
  const std::vector<std::string> settings = {silent[0], "TUTTI_GPU_SCRATCH=1M"};
  launch_ranks(team_of(2, Seating::processes, settings), [](Seat& seat) {
    CudaUser user(library, choose_gpu(seat, Seating::processes));
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 300'200);
    const std::array<std::size_t, 2> counts{seat.rank() == 0 ? 300'000u : 300'001u, 100};
    const auto made = tuttiReduceScatterV(one.input, counts.data(), nullptr, one.output,
                                          counts[static_cast<std::size_t>(seat.rank())], tuttiInt32, tuttiSum, comm,
                                          tuttiCudaStream(one.stream));
    EXPECT_TRUE(made == tuttiSuccess || made == tuttiInvalidUsage) << made;  // the other has found out already
    user.synchronize(one.stream);
    EXPECT_EQ(await_error(comm), tuttiInvalidUsage);
    EXPECT_TRUE(fails(one.all_reduce(), tuttiInvalidUsage, "sends 1200004 bytes to rank 0, which expects 1200000"));
    EXPECT_EQ(user.get(one.output, 100), std::vector<std::int32_t>(100, -1));
    if (!seat.meet()) return;
    (void)tuttiCommAbort(comm);
  });
}

/// A kernel on one rank and a call through the host on the other, which would wait for each other for ever.
struct OtherWay {
  const char* text;
  std::function<tuttiResult_t(CudaUser&, const OneRank&)> call;
};
const OtherWay other_ways[] = {{"ScatterGather",
                                [](CudaUser&, const OneRank& one) {
                                  const int all[] = {0, 1, 2};
                                  return tuttiScatterGather(one.input, one.output, all, 3, all, 2, 0, 30, tuttiInt32,
                                                            one.comm, tuttiCudaStream(one.stream));
                                }},
                               {"MemoryOfTheHost", [](CudaUser&, const OneRank& one) {
                                  std::vector<std::int32_t> host(100);
                                  return tuttiAllReduce(host.data(), host.data(), 100, tuttiInt32, tuttiSum, one.comm,
                                                        nullptr);
                                }}};

class GpuFlagsOtherWay : public ::testing::TestWithParam<OtherWay> {};
INSTANTIATE_TEST_SUITE_P(Calls, GpuFlagsOtherWay, ::testing::ValuesIn(other_ways),
                         [](const auto& test) { return test.param.text; });

TEST_P(GpuFlagsOtherWay, IsToldOnEveryRank) {
  const auto other = GetParam().call;
  launch_ranks(team_of(3, Seating::processes, silent), [&other](Seat& seat) {
    CudaUser user(library, choose_gpu(seat, Seating::processes));
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 100);
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(ok(one.all_reduce()));  // more than are remembered
    expect_sum(one, 3);
    if (!seat.meet()) return;
    (void)(seat.rank() == 1 ? other(user, one) : one.all_reduce());
    EXPECT_EQ(await_error(comm), tuttiInvalidUsage);
    EXPECT_TRUE(fails(one.all_reduce(), tuttiInvalidUsage, "ranks make different calls: as collective 41"));
    user.synchronize(one.stream);
    if (!seat.meet()) return;
    (void)tuttiCommAbort(comm);
  });
}

// ---- Ranks that are gone ----

/// All that a rank does in a kernel, up to its end at one of its actions.
class DyingBlock : public ThreadBlock<> {
 public:
  DyingBlock(BlockTeam& team, int thread, int block, std::atomic<int>& left)
      : ThreadBlock<>(team, thread, block), left_(left) {}

  bool sync_any(bool vote) { return act(), ThreadBlock<>::sync_any(vote); }
  std::uint64_t load_acquire(const std::uint64_t* from) { return act(), ThreadBlock<>::load_acquire(from); }
  template <class Word>
  void store_release(Word* to, Word value) {
    act();
    ThreadBlock<>::store_release(to, value);
  }
  void sync(device::Barrier why) { act(), ThreadBlock<>::sync(why); }
  device::FlaggedWord load_flagged(const void* from) { return act(), ThreadBlock<>::load_flagged(from); }
  void store_flagged(void* to, device::FlaggedWord word) { act(), ThreadBlock<>::store_flagged(to, word); }

 private:
  void act() const {
    if (left_.fetch_sub(1) == 0) {
      ::kill(::getpid(), SIGKILL);
      for (;;) ::pause();
    }
  }
  std::atomic<int>& left_;
};

/// The kernel of a rank that ends its process at its `last` action.
cuda::Status dying_kernel(const std::string& name, device::Body body, const std::byte* argument, int last) {
  device::Call call;
  std::memcpy(&call, argument, sizeof call);
  if (name != device::entry_name(body, DataType::int32)) {
    EXPECT_TRUE(launch_by_name(name, call));
    return 0;
  }
  std::atomic<int> left = last;
  const Launch launch{.body = body, .type = DataType::int32, .call = &call};
  BlockTeam team(1);
  BodyShared shared;
  for (int block = 0; block < launch.blocks(); ++block) {
    DyingBlock b(team, 0, block, left);
    run_body_of<std::int32_t>(b, shared, body, call);
  }
  return 0;
}

/// What those say who are left: whom their kernels waited for, and where.
std::string given_up(int rank, int gone) {
  return "the kernel of rank " + std::to_string(rank) + " on GPU 0 gave up while it waited for rank " +
         std::to_string(gone) + " on channel 0 at step 0";
}

class GpuFlagsDeathIn : public ::testing::TestWithParam<device::Body> {};
INSTANTIATE_TEST_SUITE_P(Kernels, GpuFlagsDeathIn, ::testing::Values(device::Body::one_shot, device::Body::run_plan));

/// Killed at each of its actions in the kernel: signature, words, slots, polls and barriers. Those of the others end,
/// those that had all they needed rightly so.
TEST_P(GpuFlagsDeathIn, AtEachAction) {
  constexpr int gone = 1;
  const auto body = GetParam();
  const std::vector<std::string> settings = {
      silent[0], std::string("TUTTI_GPU_KERNELS=") + (body == device::Body::run_plan ? "run_plan" : "auto")};
  bool some_gave_up = false;
  for (int last = 0; last < 12; ++last) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    Workers team(team_of(3, Seating::processes, settings), [last, body](Seat& seat) {
      FakeKernel kernel = bodies();
      if (seat.rank() == gone)
        kernel = [last, body](const std::string& name, const std::byte* argument, unsigned, unsigned) {
          return dying_kernel(name, body, argument, last);
        };
      CudaUser user(library, choose_gpu(seat, Seating::processes, kernel));
      auto* const comm = seat.init_one();
      ASSERT_NE(comm, nullptr);
      const OneRank one(user, comm, seat.rank(), 6);
      if (!seat.meet()) return;
      const auto made = one.all_reduce();
      if (seat.rank() == gone) {
        user.synchronize(one.stream);
        ::kill(::getpid(), SIGKILL);
      }
      if (made == tuttiSuccess) user.synchronize(one.stream);
      EXPECT_EQ(await_error(comm), tuttiRemoteError);
      EXPECT_TRUE(fails(one.all_reduce(), tuttiRemoteError, " lost: its process was killed"));
      if (tuttiGetLastError(comm) == nullptr) return;
      const bool right = user.get(one.output, 6) == sums(6, 3);
      // For the one that is gone, or for one that has heard of it before.
      const std::string reason = "the kernel of rank " + std::to_string(seat.rank()) + " on GPU 0 gave up while";
      const bool gave_up = std::string(tuttiGetLastError(comm)).find(reason) != std::string::npos;
      EXPECT_TRUE(right || gave_up || made != tuttiSuccess) << tuttiGetLastError(comm);
      seat.board().word(0).fetch_or(gave_up ? 1 : 0);
      (void)tuttiCommAbort(comm);
      seat.board().word(1).fetch_add(1);
    });
    while (team.board().word(1).load() < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    team.kill(gone);  // it is gone already; and nobody is to wonder
    ASSERT_TRUE(team.finish());
    some_gave_up = some_gave_up || team.board().word(0).load() != 0;
  }
  EXPECT_TRUE(some_gave_up);
}

/// Killed while the others' kernels wait for it: they end within a second, and say for whom and where they waited.
TEST(GpuFlagsDeath, InMidKernel) {
  Workers team(team_of(3, Seating::processes, silent), [](Seat& seat) {
    CudaUser user(library, choose_gpu(seat, Seating::processes));
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 1000);
    ASSERT_TRUE(ok(one.all_reduce()));
    expect_sum(one, 3);
    if (!seat.meet()) return;
    if (seat.rank() == 2) {
      for (;;) ::pause();
    }
    ASSERT_TRUE(ok(one.all_reduce()));
    seat.board().word(0).fetch_add(1);
    ASSERT_TRUE(seat.board().wait_for(1, 1));
    const auto began = std::chrono::steady_clock::now();
    user.synchronize(one.stream);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    EXPECT_LT(took.count(), 1.0 * patience());
    EXPECT_EQ(await_error(comm), tuttiRemoteError);
    for (const std::string& words : {std::string(" lost: its process was killed"), given_up(seat.rank(), 2)})
      EXPECT_TRUE(fails(one.all_reduce(), tuttiRemoteError, words));
    EXPECT_TRUE(ok(tuttiCommAbort(comm)));
  });
  while (team.board().word(0).load() < 2 && !::testing::Test::HasFailure()) std::this_thread::yield();
  team.kill(2);
  team.board().raise(1, 1);
  EXPECT_TRUE(team.finish());
}

/// An abort of one rank ends its own kernels and those of the others.
TEST(GpuFlagsDeath, AnAbortedRank) {
  launch_ranks(team_of(3, Seating::processes, silent), [](Seat& seat) {
    CudaUser user(library, choose_gpu(seat, Seating::processes));
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 1000);
    if (seat.rank() != 2) {
      ASSERT_TRUE(ok(one.all_reduce()));
    }
    if (!seat.meet()) return;
    if (seat.rank() == 2) {
      EXPECT_TRUE(ok(tuttiCommAbort(comm)));
      return;
    }
    user.synchronize(one.stream);
    EXPECT_EQ(await_error(comm), tuttiRemoteError);
    EXPECT_TRUE(fails(one.all_reduce(), tuttiRemoteError, "aborted"));
    EXPECT_TRUE(ok(tuttiCommAbort(comm)));
  });
}

/// A rank that does not come in time.
TEST(GpuFlagsDeath, TheLimitOfACall) {
  launch_ranks(team_of(2, Seating::processes, {"TUTTI_DEBUG=NONE", "TUTTI_TIMEOUT_MS=200"}), [](Seat& seat) {
    CudaUser user(library, choose_gpu(seat, Seating::processes));
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 10);
    if (seat.rank() == 0) {
      ASSERT_TRUE(ok(one.all_reduce()));
      user.synchronize(one.stream);
      EXPECT_EQ(await_error(comm), tuttiTimeout);
      EXPECT_TRUE(fails(one.all_reduce(), tuttiTimeout, "waited for rank 1 on channel 0"));
    }
    if (!seat.meet()) return;
    (void)tuttiCommAbort(comm);
  });
}

}  // namespace
}  // namespace tutti::testing
