// Calls with a count per rank by kernels that wait for each other's flags, between processes and GPUs.
#include <array>

#include "base/limits.h"
#include "support/gpu_calls.h"
#include "support/gpu_meeting.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

using Where = std::tuple<int, Seating>;

class GpuCounts : public ::testing::TestWithParam<Where> {};
INSTANTIATE_TEST_SUITE_P(Teams, GpuCounts,
                         ::testing::Values(Where{2, Seating::processes}, Where{3, Seating::processes},
                                           Where{8, Seating::processes}, Where{4, Seating::pairs_on_a_gpu},
                                           Where{3, Seating::apart}),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "_" + name(std::get<1>(test.param));
                         });

/// Of all placings, in place too, with blocks of nothing and of more than all slots hold.
TEST_P(GpuCounts, CallsOfAllKinds) {
  const auto [number, seating] = GetParam();
  in_seats(team_of(number, seating, {"TUTTI_GPU_SCRATCH=1M"}), seating,
           [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
             auto* const stream = user.stream();
             const auto seeds = static_cast<std::uint64_t>(share_of(60));
             std::uint64_t made = 0;
             const auto make = [&](bool reductions) {
               for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
                 CountsCall call = random_counts_call(seed, seat.ranks());
                 if (reduces(call.kind) != reductions) continue;
                 call.memory = Mix::device;
                 if (reductions) {
                   constexpr std::array types{tuttiInt32, tuttiInt8, tuttiBfloat16, tuttiFloat64, tuttiFloat32};
                   constexpr std::array ops{Op::sum, Op::avg, Op::max, Op::pre_mul_sum};
                   call.type = types[made % types.size()];
                   call.op = ops[made % ops.size()];
                   call.misaligned -= call.misaligned % size_of(call.type);
                 }
                 if (seed % 20 == 0) call.large = 1'500'000;
                 seat.doing(call.text());
                 ASSERT_EQ(run_counts_on_gpu(call, seat, {comm}, user, stream), "") << call.text();
                 ++made;
               }
             };
             const int before = waits_for_host();
             make(/*reductions=*/false);
             EXPECT_GT(made, seeds / 3);
             make(/*reductions=*/true);
             EXPECT_GT(made, seeds / 2);
             EXPECT_EQ(waits_for_host(), before);
           });
}

/// A rank without elements passes the default stream, so only its pointers tell that it means device memory.
TEST(GpuCountsOfNothing, GoAsTheOtherRanksCalls) {
  in_seats(team_of(3, Seating::processes), Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    const OneRank one(user, comm, seat.rank(), 12);
    const std::vector<std::size_t> none(3, 0), some = seat.rank() == 2 ? none : std::vector<std::size_t>{4, 4, 0};
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(ok(tuttiAllToAllV(one.input, some.data(), nullptr, one.output, some.data(), nullptr, tuttiInt32, comm,
                                    tuttiCudaStream(seat.rank() == 2 ? nullptr : one.stream))));
      ASSERT_TRUE(ok(one.all_reduce()));
      user.synchronize(one.stream);
      EXPECT_EQ(user.get(one.output, one.count), sums(one.count, 3));
    }
  });
}

/// Such sums are made by a chain of passes; here in place.
TEST(GpuCountsReductions, OfMoreRanksThanAPassHasSources) {
  constexpr int ranks = 17;
  static_assert(ranks > limits::sources_max);
  in_seats(team_of(ranks, Seating::apart, {"TUTTI_MAX_CTAS=1"}), Seating::apart,
           [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
             const int before = waits_for_host();
             std::vector<std::size_t> counts(ranks), begins(ranks);
             for (std::size_t r = 0; r < ranks; ++r)
               counts[r] = 10 * r + 1, begins[r] = r == 0 ? 0 : begins[r - 1] + counts[r - 1];
             const auto own = static_cast<std::size_t>(seat.rank());
             const OneRank one(user, comm, seat.rank(), begins.back() + counts.back());
             auto* const in_place = one.input + begins[own];
             ASSERT_TRUE(ok(tuttiReduceScatterV(one.input, counts.data(), begins.data(), in_place, counts[own],
                                                tuttiInt32, tuttiSum, comm, tuttiCudaStream(one.stream))));
             user.synchronize(one.stream);
             const auto all = sums(one.count, ranks);
             const auto begin = all.begin() + static_cast<std::ptrdiff_t>(begins[own]);
             EXPECT_EQ(user.get(in_place, counts[own]),
                       std::vector<std::int32_t>(begin, begin + static_cast<std::ptrdiff_t>(counts[own])));
             EXPECT_EQ(waits_for_host(), before);
           });
}

/// Scratch memory is limited: slices of the blocks, one after another.
TEST(GpuCountsReductions, LargeOnesGoInSlices) {
  const Team team = team_of(2, Seating::processes, {"TUTTI_GPU_SCRATCH=1M"});
  in_seats(team, Seating::processes, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    const std::array<std::size_t, 2> counts{300'001, 100};
    const auto own = static_cast<std::size_t>(seat.rank());
    const OneRank one(user, comm, seat.rank(), counts[0] + counts[1]);
    const int before = launches();
    ASSERT_TRUE(ok(tuttiReduceScatterV(one.input, counts.data(), nullptr, one.output, counts[own], tuttiInt32, tuttiSum,
                                       comm, tuttiCudaStream(one.stream))));
    user.synchronize(one.stream);
    EXPECT_EQ(launches() - before, own == 0 ? 8 : 5);  // four exchanges; and passes where there is something
    const auto all = sums(one.count, 2);
    const auto begin = all.begin() + (own == 0 ? 0 : 300'001);
    EXPECT_EQ(user.get(one.output, counts[own]),
              std::vector<std::int32_t>(begin, begin + static_cast<std::ptrdiff_t>(counts[own])));
  });
}

}  // namespace
}  // namespace tutti::testing
