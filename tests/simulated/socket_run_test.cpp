// Every algorithm's plans over sockets: whatever the kernel takes and gives at a time, from slots and from the buffers
// of the call, in place or not, the result is right and nobody waits for ever.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "algorithms/algorithm.h"
#include "simulated/socket_world.h"
#include "support/share.h"

namespace tutti {
namespace {

/// Large enough for several tiles on each channel, of blocks that leave and land in the call's buffers.
constexpr std::size_t count_large = 150'000;

void run_all(Collective collective, int ranks, const SocketSetting& setting) {
  int nth = ranks;
  for (const Algorithm& algorithm : algorithms()) {
    ++nth;  // or each algorithm had the same share of what follows
    const Shape shape{.collective = collective, .ranks = ranks, .root = ranks / 2};
    if (!algorithm.supports(shape)) continue;
    const Schedule schedule = algorithm.build(shape);
    for (const bool in_place : {false, true}) {
      if (in_place && collective == Collective::all_to_all) continue;
      for (const std::size_t count : {std::size_t{1}, count_large / static_cast<std::size_t>(ranks)}) {
        if (!in_share(nth++)) continue;
        SCOPED_TRACE(fmt::format("{} {}, {} ranks, {} elements, in place {}, seed {}", name(collective), algorithm.name,
                                 ranks, count, in_place, setting.seed));
        SocketWorld world(schedule, count, in_place, setting);
        world.run();
        for (Rank rank = 0; rank < ranks && !::testing::Test::HasFailure(); ++rank) world.check(rank);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

class OverSockets : public ::testing::TestWithParam<Collective> {};

TEST_P(OverSockets, EveryAlgorithmIsRight) {
  run_all(GetParam(), 2, {.seed = 2, .sockets = 2});
  run_all(GetParam(), 3, {.seed = 3, .slots = 4});
  run_all(GetParam(), 4, {.seed = 4, .sockets = 3, .slots = 1});
}

INSTANTIATE_TEST_SUITE_P(Simulated, OverSockets,
                         ::testing::Values(Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                           Collective::broadcast, Collective::all_to_all),
                         [](const auto& tested) { return std::string(name(tested.param)); });

}  // namespace
}  // namespace tutti
