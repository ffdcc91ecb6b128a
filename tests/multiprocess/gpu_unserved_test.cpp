// Reductions of device memory by types and operators that GPUs do not have: refused before anything is queued, with the
// reason; the ranks go on, and the same calls work on host memory.
#include <array>
#include <complex>

#include "support/gpu_meeting.h"

namespace tutti::testing {
namespace {

/// Which path calls on device memory take.
enum class Way { kernel, meeting, peers, host };
const char* name(Way way) {
  constexpr const char* names[] = {"kernel", "meeting", "peers", "host"};
  return names[static_cast<std::size_t>(way)];
}

class GpuUnserved : public ::testing::TestWithParam<Way> {
 protected:
  static void run(const std::function<void(CudaUser&, const std::vector<OneRank>&)>& body) {
    switch (GetParam()) {
      case Way::kernel: return run_in_one_thread(body);
      case Way::meeting: return run_in_processes({}, body);
      case Way::peers: return run_in_processes({"TUTTI_GPU_P2P=always"}, body);
      case Way::host: return run_in_processes({"TUTTI_GPU_STAGED=always"}, body);
    }
  }

 private:
  static void run_in_one_thread(const std::function<void(CudaUser&, const std::vector<OneRank>&)>& body) {
    launch_ranks(launch_group(2, Layout::one_thread), [&](Seat& seat) {
      fake_cuda(library).set_kernel(sum_kernel);
      CudaUser user(library);
      const auto comms = seat.init();
      ASSERT_FALSE(comms.empty());
      body(user, make_ranks(user, seat, comms, 100));
      destroy(comms);
    });
  }
  static void run_in_processes(const std::vector<std::string>& environment,
                               const std::function<void(CudaUser&, const std::vector<OneRank>&)>& body) {
    constexpr auto seating = Seating::processes;
    in_seats(team_of(2, seating, environment), seating,
             [&](Seat& seat, CudaUser& user, tuttiComm_t comm) { body(user, make_ranks(user, seat, {comm}, 100)); });
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, GpuUnserved, ::testing::Values(Way::kernel, Way::meeting, Way::peers, Way::host),
                         [](const auto& test) { return name(test.param); });

/// A reduction of two elements of any type, by any call that reduces.
struct Reduction {
  const char* name;
  tuttiResult_t (*call)(const void*, void*, tuttiDataType_t, tuttiRedOp_t, tuttiComm_t, tuttiStream_t);
};

constexpr std::array<std::size_t, 2> ones = {1, 1};
constexpr std::array reductions = {
    Reduction{"AllReduce", [](auto in, auto out, auto type, auto op, auto comm,
                              auto stream) { return tuttiAllReduce(in, out, 2, type, op, comm, stream); }},
    Reduction{"Reduce", [](auto in, auto out, auto type, auto op, auto comm,
                           auto stream) { return tuttiReduce(in, out, 2, type, op, 0, comm, stream); }},
    Reduction{"ReduceScatter", [](auto in, auto out, auto type, auto op, auto comm,
                                  auto stream) { return tuttiReduceScatter(in, out, 1, type, op, comm, stream); }},
    Reduction{"ReduceScatterV",
              [](auto in, auto out, auto type, auto op, auto comm, auto stream) {
                return tuttiReduceScatterV(in, ones.data(), nullptr, out, 1, type, op, comm, stream);
              }},
};

void add_up(const void* in, void* inout, std::size_t count, tuttiDataType_t, void*) {
  for (std::size_t i = 0; i < count; ++i)
    static_cast<std::int32_t*>(inout)[i] += static_cast<const std::int32_t*>(in)[i];
}

struct Unserved {
  tuttiDataType_t type;
  tuttiRedOp_t op;
  const char* words;
};

/// Those that tutti has, each with its reason; `own` is the program's.
std::vector<Unserved> unserved(tuttiRedOp_t own) {
  std::vector<Unserved> all = {{tuttiInt16, tuttiSum, "the type is int16"},
                               {tuttiUint16, tuttiMax, "the type is uint16"},
                               {tuttiComplex64, tuttiSum, "the type is complex64"},
                               {tuttiComplex128, tuttiProd, "the type is complex128"},
                               {tuttiInt32, own, "the operator is user"}};
  for (const auto& [op, words] :
       {std::pair{tuttiBitAnd, "the operator is bit_and"}, std::pair{tuttiBitOr, "the operator is bit_or"},
        std::pair{tuttiBitXor, "the operator is bit_xor"}, std::pair{tuttiLogicalAnd, "the operator is logical_and"},
        std::pair{tuttiLogicalOr, "the operator is logical_or"},
        std::pair{tuttiLogicalXor, "the operator is logical_xor"}})
    all.push_back({tuttiInt32, op, words});
  return all;
}

/// By the path that the test is about.
void expect_usable(Way way, CudaUser& user, const std::vector<OneRank>& ranks) {
  for (const OneRank& one : ranks) {
    tuttiResult_t error = tuttiNumResults;
    EXPECT_TRUE(ok(tuttiCommGetAsyncError(one.comm, &error)));
    EXPECT_EQ(error, tuttiSuccess);
    user.write(one.output, std::vector<std::int32_t>(one.count, -1));
  }
  const int launched = launches(), waited = waits_for_host();
  all_reduce(ranks);
  for (const OneRank& one : ranks) expect_sum(one, 2);
  EXPECT_EQ(launches() > launched, way != Way::host);
  EXPECT_EQ(waits_for_host() > waited, way == Way::peers || way == Way::host);
}

/// The same on host memory, which it is for.
void expect_served_by_host(const std::vector<OneRank>& ranks, const Reduction& reduction, const Unserved& call,
                           const std::vector<tuttiRedOp_t>& ops) {
  std::vector<std::array<std::complex<double>, 2>> in(ranks.size()), out(ranks.size());
  ASSERT_TRUE(ok(tuttiGroupStart()));
  for (std::size_t i = 0; i < ranks.size(); ++i)
    ASSERT_TRUE(ok(reduction.call(in[i].data(), out[i].data(), call.type, ops[i], ranks[i].comm, nullptr)));
  ASSERT_TRUE(ok(tuttiGroupEnd()));
}

TEST_P(GpuUnserved, IsRefusedAndTheRanksGoOn) {
  run([](CudaUser& user, const std::vector<OneRank>& ranks) {
    std::vector<tuttiRedOp_t> own(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i)
      ASSERT_TRUE(ok(tuttiRedOpCreate(&own[i], add_up, nullptr, tuttiInt32, ranks[i].comm)));
    expect_usable(GetParam(), user, ranks);
    for (const Reduction& reduction : reductions)
      for (const Unserved& call : unserved(own[0])) {
        SCOPED_TRACE(std::string(reduction.name) + ": " + call.words);
        std::vector<tuttiRedOp_t> ops(ranks.size(), call.op);
        if (call.op == own[0]) ops = own;
        for (std::size_t i = 0; i < ranks.size(); ++i) {
          const OneRank& one = ranks[i];
          const auto refused = [&] {
            return fails(
                reduction.call(one.input, one.output, call.type, ops[i], one.comm, tuttiCudaStream(one.stream)),
                tuttiInvalidArgument, call.words);
          };
          EXPECT_TRUE(refused());
          EXPECT_EQ(user.get(one.output, one.count), sums(one.count, 2)) << "something was written";
          ASSERT_TRUE(ok(tuttiGroupStart()));
          EXPECT_TRUE(ok(one.all_reduce()));
          EXPECT_TRUE(refused());
          EXPECT_EQ(tuttiGroupEnd(), tuttiInvalidArgument) << "nothing of the group is started";
        }
        expect_served_by_host(ranks, reduction, call, ops);
      }
    expect_usable(GetParam(), user, ranks);
    for (std::size_t i = 0; i < ranks.size(); ++i) EXPECT_TRUE(ok(tuttiRedOpDestroy(own[i], ranks[i].comm)));
  });
}

/// All other calls move every type.
TEST_P(GpuUnserved, IsMovedByOtherCalls) {
  run([](CudaUser& user, const std::vector<OneRank>& ranks) {
    if (GetParam() == Way::kernel) return;  // the kernel here knows sums alone
    const OneRank& one = ranks[0];
    ASSERT_TRUE(ok(tuttiBroadcast(one.input, one.output, one.count / 4, tuttiComplex128, 1, one.comm,
                                  tuttiCudaStream(one.stream))));
    user.synchronize(one.stream);
    EXPECT_EQ(user.get(one.output, one.count), numbers(one.count, 1));
    expect_usable(GetParam(), user, ranks);
  });
}

}  // namespace
}  // namespace tutti::testing
