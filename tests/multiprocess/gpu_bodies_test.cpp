// Calls on device memory with the kernels' own bodies, on threads of the CPU: what the host hands over is what they
// take.
#include <atomic>
#include <cstring>
#include <set>

#include "support/gpu_calls.h"
#include "support/host_kernels.h"

namespace tutti::testing {
namespace {

TEST(GpuBodies, CallsOfAllKinds) {
  for (const int ranks : {2, 3})
    launch_ranks(launch_group(ranks, Layout::one_thread, {"TUTTI_MAX_CTAS=3", "TUTTI_ALGO=allreduce:two_shot"}),
                 [](Seat& seat) {
                   std::set<std::string> entries;
                   fake_cuda(library).set_kernel(
                       [&entries](const std::string& name, const std::byte* argument, unsigned, unsigned) {
                         device::Call call;
                         std::memcpy(&call, argument, sizeof call);
                         entries.insert(name);
                         EXPECT_TRUE(launch_by_name(name, call));
                         return 0;
                       });
                   CudaUser user(library);
                   const auto comms = seat.init();
                   ASSERT_FALSE(comms.empty());
                   auto* const stream = user.stream();
                   std::uint64_t seed = 0;
                   for (int kind = 0; kind < device_kind_count; ++kind)
                     for (const tuttiDataType_t type : {tuttiInt32, tuttiBfloat16})
                       for (const std::size_t count : {1u, 100u, 30'000u}) {
                         const Call call{.kind = static_cast<Kind>(kind),
                                         .type = type,
                                         .values = reduces(static_cast<Kind>(kind)) ? Values::exact : Values::bits,
                                         .count = static_cast<Kind>(kind) == Kind::barrier ? 0 : count,
                                         .root = seat.ranks() - 1,
                                         .in_place = count == 100 ? InPlace::some : InPlace::none,
                                         .memory = Mix::device,
                                         .seed = ++seed};
                         seat.doing(call.text());
                         ASSERT_EQ(run_on_gpu(call, seat, comms, user, stream, 2), "") << call.text();
                       }
                   EXPECT_TRUE(entries.contains("tutti_two_shot_int32"));
                   EXPECT_TRUE(entries.contains("tutti_run_plan_uint8"));
                   destroy(comms);
                 });
}

}  // namespace
}  // namespace tutti::testing
