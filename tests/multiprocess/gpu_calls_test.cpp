// Every collective on device memory gives what it should: all pairs of collective and operator, type, count, values, in
// place, alignment, root and number of ranks; and by every algorithm. The fake GPU carries out the plans as they mean.
#include <map>
#include <set>

#include "algorithms/algorithm.h"
#include "support/gpu_calls.h"
#include "support/property_space.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

/// Without the dimensions of the host, layout, transport, algorithm and memory; and without the largest count, as most
/// of the time goes into looking at what came out.
std::map<int, std::vector<Call>> calls_by_ranks() {
  auto levels = space_levels();
  for (const std::size_t of_host : {1u, 2u, 3u, 9u}) levels[of_host] = 1;
  levels[6] -= 1;
  std::map<int, std::vector<Call>> all;
  std::uint64_t nth = 0;
  for (const auto& row : covering_array(levels, 1, [](const Row& row) { return !redundant(row); })) {
    Call call = call_of(row, ++nth);
    const bool on_host = reduces(call.kind) && static_cast<int>(call.type) >= device_type_count;
    if (on_host || prefixes(call.kind)) continue;  // the host's alone
    call.memory = Mix::device;
    all[set_of(row).ranks].push_back(call);
  }
  return all;
}

TEST(GpuCalls, EveryKindOfCall) {
  std::size_t number = 0;
  for (const auto& each : calls_by_ranks()) {
    const int ranks = each.first;
    const std::vector<Call>& calls = each.second;
    number += calls.size();
    launch_ranks(launch_group(ranks, Layout::one_thread), [&calls, first = ranks](Seat& seat) {
      int nth = first;
      CudaUser user(library);
      const auto comms = seat.init();
      ASSERT_FALSE(comms.empty());
      auto* const stream = user.stream();
      for (const Call& call : calls) {
        if (!in_share(nth++)) continue;
        seat.doing(call.text());
        ASSERT_EQ(run_on_gpu(call, seat, comms, user, stream, 2), "") << call.text();
      }
      EXPECT_GT(launches(), 0);
      destroy(comms);
    });
  }
  EXPECT_GT(number, 200u);
}

/// Ranks that wait for each other in mid-plan, one after the other, through scratch: whatever plans do.
TEST(GpuCalls, EveryAlgorithm) {
  int used = 0;
  int nth = 0;
  for (const Algorithm& algorithm : algorithms())
    for (const int ranks : {4, 5}) {
      std::vector<Call> calls;
      for (int kind = 0; kind < device_kind_count; ++kind) {
        const Shape shape{.collective = static_cast<Collective>(kind), .ranks = ranks, .root = ranks - 1};
        if (!serves(algorithm, shape, Access::mapped)) continue;
        for (const std::size_t count : {5u, 20'000u}) {
          if (!in_share(nth++)) continue;
          calls.push_back({.kind = static_cast<Kind>(kind),
                           .type = tuttiInt32,
                           .count = kind == static_cast<int>(Kind::barrier) ? 0 : count,
                           .root = ranks - 1,
                           .in_place = count == 5 ? InPlace::some : InPlace::none,
                           .memory = Mix::device,
                           .seed = count});
        }
      }
      if (calls.empty()) continue;
      ++used;
      launch_ranks(launch_group(ranks, Layout::one_thread, {"TUTTI_ALGO=" + algorithm.name}), [&](Seat& seat) {
        CudaUser user(library);
        const auto comms = seat.init();
        ASSERT_FALSE(comms.empty());
        auto* const stream = user.stream();
        for (const Call& call : calls) {
          seat.doing(call.text());
          ASSERT_EQ(run_on_gpu(call, seat, comms, user, stream, 2), "") << call.text();
          const char* name = "";
          const char* transport = "";
          EXPECT_TRUE(ok(tuttiCommLastAlgorithm(comms[0], &name, &transport)));
          EXPECT_EQ(std::string(name), algorithm.name);
          EXPECT_EQ(std::string(transport), "gpu");
        }
        destroy(comms);
      });
    }
  EXPECT_GT(used, share_of(40));
}

}  // namespace
}  // namespace tutti::testing
