// Calls by kernels that wait for each other's flags, between processes and GPUs: no host on the path.
#include <array>
#include <thread>

#include "base/limits.h"
#include "support/gpu_calls.h"
#include "support/gpu_meeting.h"
#include "support/log_file.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

using Where = std::tuple<int, Seating>;

class GpuFlags : public ::testing::TestWithParam<Where> {};
INSTANTIATE_TEST_SUITE_P(Teams, GpuFlags,
                         ::testing::Values(Where{2, Seating::processes}, Where{3, Seating::processes},
                                           Where{5, Seating::processes}, Where{8, Seating::processes},
                                           Where{3, Seating::threads}, Where{4, Seating::pairs},
                                           Where{7, Seating::pairs}, Where{4, Seating::pairs_on_a_gpu},
                                           Where{6, Seating::pairs_on_a_gpu}, Where{3, Seating::apart}),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "_" + name(std::get<1>(test.param));
                         });

TEST_P(GpuFlags, AllReducesAreRightAndWaitForNoHost) {
  const auto [number, seating] = GetParam();
  in_seats(team_of(number, seating), seating, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    const int before = waits_for_host(), launched = launches();
    for (const std::size_t count : {1u, 3u, 1000u, 32'768u, 131'071u, 131'072u, 300'001u}) {
      seat.doing(std::to_string(count));
      const OneRank one(user, comm, seat.rank(), count);
      for (int round = 0; round < 3; ++round) {
        user.write(one.input, numbers(count, seat.rank(), round));
        ASSERT_TRUE(ok(one.all_reduce()));
        expect_sum(one, seat.ranks(), round);
      }
    }
    EXPECT_EQ(waits_for_host(), before);
    EXPECT_GE(launches() - launched, 18);
  });
}

/// Such sums are made by a chain of passes.
TEST(GpuFlags, MoreRanksThanAPassHasSources) {
  constexpr int ranks = 17;
  static_assert(ranks > limits::sources_max);
  in_seats(team_of(ranks, Seating::apart, {"TUTTI_MAX_CTAS=1"}), Seating::apart,
           [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
             const int before = waits_for_host();
             for (const std::size_t count : {1u, 3000u}) {
               const OneRank one(user, comm, seat.rank(), count);
               ASSERT_TRUE(ok(one.all_reduce()));
               expect_sum(one, ranks);
             }
             EXPECT_EQ(waits_for_host(), before);
           });
}

/// Of types and operators, of all collectives and roots; in place too.
class GpuFlagsKinds : public ::testing::TestWithParam<Where> {};
INSTANTIATE_TEST_SUITE_P(Teams, GpuFlagsKinds,
                         ::testing::Values(Where{2, Seating::processes}, Where{3, Seating::processes},
                                           Where{8, Seating::processes}, Where{4, Seating::pairs_on_a_gpu},
                                           Where{3, Seating::apart}),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "_" + name(std::get<1>(test.param));
                         });

TEST_P(GpuFlagsKinds, CallsOfAllKinds) {
  const auto [number, seating] = GetParam();
  in_seats(team_of(number, seating), seating, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    auto* const stream = user.stream();
    std::uint64_t seed = 0;
    for (const tuttiDataType_t type : {tuttiInt8, tuttiBfloat16, tuttiFloat64})
      for (const Op op : {Op::sum, Op::max, Op::avg})
        for (const InPlace in_place : {InPlace::none, InPlace::all, InPlace::some}) {
          const Call call{
              .type = type, .op = op, .count = 77, .in_place = in_place, .memory = Mix::device, .seed = ++seed};
          seat.doing(call.text());
          ASSERT_EQ(run_on_gpu(call, seat, {comm}, user, stream, 2), "") << call.text();
        }
    const int before = waits_for_host();
    for (int kind = 0; kind < device_kind_count; ++kind)
      for (const std::size_t count : {9001u, 1u, 100u}) {
        if (count != 9001 && share_of(100) < 100) continue;
        const auto in_place = static_cast<InPlace>(seed % 3);
        const Call call{.kind = static_cast<Kind>(kind),
                        .type = tuttiInt32,
                        .values = reduces(static_cast<Kind>(kind)) ? Values::exact : Values::bits,
                        .count = static_cast<Kind>(kind) == Kind::barrier ? 0u : count,
                        .root = static_cast<int>(seed % static_cast<std::uint64_t>(seat.ranks())),
                        .in_place = in_place,
                        .memory = Mix::device,
                        .seed = ++seed};
        seat.doing(call.text());
        ASSERT_EQ(run_on_gpu(call, seat, {comm}, user, stream, 2), "") << call.text();
      }
    EXPECT_EQ(waits_for_host(), before);
  });
}

/// Ranks begin in turn, each several calls before the next one begins.
TEST(GpuFlags, LaunchesMayBeFarApart) {
  constexpr int ranks = 3, calls = 4;
  static constexpr std::size_t count = 500;
  in_seats(team_of(ranks, Seating::processes), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    for (int late = 0; late < ranks; ++late) {
      std::vector<OneRank> all;
      for (int i = 0; i < calls; ++i) {
        all.emplace_back(user, comm, seat.rank(), count);
        all.back().stream = all.front().stream;
        user.write(all.back().input, numbers(count, seat.rank(), i));
      }
      if (!seat.meet()) return;
      if (seat.rank() == late) fake_cuda(library).hold();
      for (const OneRank& one : all) ASSERT_TRUE(ok(one.all_reduce()));
      if (!seat.meet()) return;
      if (seat.rank() == late) fake_cuda(library).release();
      for (int i = 0; i < calls; ++i) expect_sum(all[static_cast<std::size_t>(i)], ranks, i);
    }
  });
}

/// Calls on two streams, one after the other although nothing else orders them.
TEST(GpuFlags, TwoCallsUnderWayOnTwoStreams) {
  in_seats(team_of(2, Seating::processes), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    const OneRank one(user, comm, seat.rank(), 300), other(user, comm, seat.rank(), 9000);
    for (int round = 0; round < 30; ++round) {
      ASSERT_TRUE(ok(one.all_reduce()));
      ASSERT_TRUE(ok(other.all_reduce()));
    }
    expect_sum(one, 2);
    expect_sum(other, 2);
  });
}

/// Though all streams share a queue, in which the plan of the second call is copied behind a kernel that waits.
TEST(GpuFlags, NewKindsOfCallsWaitForNoKernel) {
  in_seats(team_of(2, Seating::processes), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    constexpr std::size_t count = 500;
    fake_cuda(library).set_one_queue(true);
    const OneRank one(user, comm, seat.rank(), 2 * count);
    auto* const stream = tuttiCudaStream(one.stream);
    auto* const all = user.put(std::vector<std::int32_t>(2 * count, -1));
    if (!seat.meet()) return;
    if (seat.rank() == 1) {
      ASSERT_TRUE(seat.board().wait_for(0, 1));
    }
    ASSERT_TRUE(ok(tuttiAllGather(one.input, all, count, tuttiInt32, comm, stream)));
    ASSERT_TRUE(ok(tuttiBroadcast(one.input, one.output, count, tuttiInt32, 1, comm, stream)));
    ASSERT_TRUE(ok(tuttiReduceScatter(all, one.output + count, count, tuttiInt32, tuttiSum, comm, stream)));
    if (seat.rank() == 0) seat.board().raise(0, 1);
    user.synchronize(one.stream);
    EXPECT_EQ(user.get(one.output, count), numbers(count, 1));
    auto twice = numbers(count, seat.rank());
    for (std::int32_t& value : twice) value *= 2;
    EXPECT_EQ(user.get(one.output + count, count), twice);
  });
}

/// The blocks of all communicators fit the GPU together: what is used up sends the third through the host.
TEST(GpuFlags, CommunicatorsInOppositeOrders) {
  for (const bool reversed : {false, true})
    launch_ranks(team_of(2, Seating::processes), [reversed](Seat& seat) {
      const LogFile log;
      const int gpu = choose_gpu(seat, Seating::processes);
      fake_cuda(library).set_blocks_max(4);
      CudaUser user(library, gpu);
      std::vector<tuttiComm_t> comms;
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(log.text().find("may need all blocks"), std::string::npos);
        comms.push_back(seat.init_one());
        ASSERT_NE(comms.back(), nullptr);
      }
      EXPECT_NE(log.text().find("may need all blocks of GPU 0"), std::string::npos);
      const OneRank a(user, comms[0], seat.rank(), 2000), b(user, comms[1], seat.rank(), 2000);
      const int before = waits_for_host();
      for (int round = 0; round < 20; ++round) {
        const bool first = (seat.rank() == 0) != reversed;
        ASSERT_TRUE(ok((first ? a : b).all_reduce()));
        ASSERT_TRUE(ok((first ? b : a).all_reduce()));
      }
      expect_sum(a, 2);
      expect_sum(b, 2);
      EXPECT_EQ(waits_for_host(), before);
      const OneRank c(user, comms[2], seat.rank(), 2000);
      ASSERT_TRUE(ok(c.all_reduce()));
      expect_sum(c, 2);
      EXPECT_GT(waits_for_host(), before);
      EXPECT_TRUE(ok(tuttiCommDestroy(comms[0])));
      comms[0] = seat.init_one();  // there is room again
      const OneRank d(user, comms[0], seat.rank(), 2000);
      const int then = waits_for_host();
      ASSERT_TRUE(ok(d.all_reduce()));
      expect_sum(d, 2);
      EXPECT_EQ(waits_for_host(), then);
      if (!seat.meet()) return;
      destroy(comms);
    });
}

/// One after another there is room for the kernels of any number of communicators, on streams of their own.
TEST(GpuFlags, CommunicatorsInTheOrderOfTheirCalls) {
  launch_ranks(team_of(2, Seating::processes, {"TUTTI_LAUNCH_ORDER_IMPLICIT=1"}), [](Seat& seat) {
    const int gpu = choose_gpu(seat, Seating::processes);
    fake_cuda(library).set_blocks_max(2);
    CudaUser user(library, gpu);
    std::vector<tuttiComm_t> comms;
    std::vector<OneRank> ranks;
    for (int i = 0; i < 4; ++i) {
      comms.push_back(seat.init_one());
      ASSERT_NE(comms.back(), nullptr);
      ranks.emplace_back(user, comms.back(), seat.rank(), i % 2 == 0 ? 2000 : 140'000);
    }
    const int before = waits_for_host();
    for (int round = 0; round < 10; ++round)
      for (std::size_t i = 0; i < ranks.size(); ++i)
        ASSERT_TRUE(ok(ranks[(i + static_cast<std::size_t>(round)) % ranks.size()].all_reduce()));
    for (const OneRank& one : ranks) expect_sum(one, 2);
    EXPECT_EQ(waits_for_host(), before);
    if (!seat.meet()) return;
    destroy(comms);
  });
}

/// Kernels need no buffer of another rank: not one that nobody could map either.
TEST(GpuFlags, MemoryThatCannotBeMapped) {
  in_seats(team_of(3, Seating::processes), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    user.allocate_pooled(seat.rank() == 1);
    const OneRank one(user, comm, seat.rank(), 1000);
    ASSERT_TRUE(ok(one.all_reduce()));
    expect_sum(one, 3);
    const int before = fake_cuda(library).calls("cuMemcpyAsync");
    ASSERT_TRUE(ok(one.all_reduce()));
    expect_sum(one, 3);
    EXPECT_EQ(fake_cuda(library).calls("cuMemcpyAsync"), before);
  });
}

/// Small ones by flags and large ones through the host, in turn, without and within a group.
TEST(GpuFlags, BesideCallsThatTheHostStarts) {
  in_seats(team_of(2, Seating::processes), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    OneRank small(user, comm, seat.rank(), 100), large(user, comm, seat.rank(), 40'000);
    large.stream = small.stream;
    for (int round = 0; round < 5; ++round) {
      ASSERT_TRUE(ok(small.all_reduce()));
      ASSERT_TRUE(ok(large.all_reduce()));
      ASSERT_TRUE(ok(small.all_reduce()));
      expect_sum(small, 2);
      expect_sum(large, 2);
    }
    auto* const stream = tuttiCudaStream(small.stream);
    auto* const sent = user.put(numbers(10, seat.rank()));
    auto* const received = user.put(std::vector<std::int32_t>(10, -1));
    for (const bool small_first : {true, false}) {
      ASSERT_TRUE(ok(tuttiGroupStart()));
      if (small_first) {
        ASSERT_TRUE(ok(small.all_reduce()));
      }
      ASSERT_TRUE(ok(large.all_reduce()));
      ASSERT_TRUE(ok(tuttiSend(sent, 10, tuttiInt32, 1 - seat.rank(), comm, stream)));
      ASSERT_TRUE(ok(tuttiRecv(received, 10, tuttiInt32, 1 - seat.rank(), comm, stream)));
      ASSERT_TRUE(ok(small.all_reduce()));
      ASSERT_TRUE(ok(tuttiGroupEnd()));
      expect_sum(small, 2);
      expect_sum(large, 2);
      EXPECT_EQ(user.get(received, 10), numbers(10, 1 - seat.rank()));
    }
  });
}

// ---- Where flags are used ----

struct Choice {
  const char* text;
  const char* setting;
  bool one_gpu;  ///< for all processes
  bool mps;
  bool flags;
};
const Choice choices[] = {{"GpusOfTheirOwn", "auto", false, false, true},
                          {"OneGpu", "auto", true, false, false},
                          {"OneGpuByMps", "auto", true, true, true},
                          {"OneGpuForced", "flags", true, false, true},
                          {"ByTheHost", "host", false, false, false},
                          {"Always", "always", false, false, false},
                          {"Off", "off", false, false, false}};

class GpuFlagsChoice : public ::testing::TestWithParam<Choice> {};
INSTANTIATE_TEST_SUITE_P(Settings, GpuFlagsChoice, ::testing::ValuesIn(choices),
                         [](const auto& test) { return test.param.text; });

TEST_P(GpuFlagsChoice, IsFollowed) {
  const Choice how = GetParam();
  launch_ranks(team_of(2, Seating::processes, {std::string("TUTTI_GPU_P2P=") + how.setting}), [&how](Seat& seat) {
    auto& fake = fake_cuda(library);
    const int gpu = choose_gpu(seat, Seating::processes);
    if (how.one_gpu) fake.set_first_device(0);
    fake.set_mps(how.mps);
    CudaUser user(library, gpu);
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 100);
    ASSERT_TRUE(ok(one.all_reduce()));
    expect_sum(one, 2);
    EXPECT_EQ(waits_for_host() == 0, how.flags);
    std::array<char, 4096> text{};
    std::size_t length = 0;
    ASSERT_TRUE(ok(tuttiCommExplain(comm, "allreduce", 100, tuttiInt32, text.data(), text.size(), &length)));
    EXPECT_EQ(std::string_view(text.data()).find("kernels that wait for each other") != std::string_view::npos,
              how.flags)
        << text.data();
    if (!seat.meet()) return;
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// A rank whose kernels cannot run takes all to the host; the start itself succeeds.
TEST(GpuFlags, KernelsThatDoNotMeetAtTheStart) {
  launch_ranks(team_of(3, Seating::processes), [](Seat& seat) {
    const int gpu = choose_gpu(seat, Seating::processes);
    if (seat.rank() == 1) fake_cuda(library).fail("cuLaunchKernel", cuda::status::invalid_value, 0, false);
    CudaUser user(library, gpu);
    auto* const comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    const OneRank one(user, comm, seat.rank(), 100);
    ASSERT_TRUE(ok(one.all_reduce()));
    expect_sum(one, 3);
    EXPECT_GT(waits_for_host(), 0);
    if (!seat.meet()) return;
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
