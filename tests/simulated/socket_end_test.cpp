// A rank that ends after each action of each algorithm's plan, over sockets: where it had done all of its plan, the
// call succeeds on all ranks; otherwise nobody waits for ever, and whoever succeeds has the right data.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "algorithms/algorithm.h"
#include "simulated/socket_world.h"
#include "support/seeds.h"
#include "support/share.h"

namespace tutti {
namespace {

constexpr std::size_t count_of_tiles = 20'000;  // several of them
constexpr std::size_t ends_max = 12;            // of one plan, spread over its actions

void end_once(const Schedule& schedule, std::size_t count, Rank ending, std::size_t actions, bool all,
              std::uint64_t seed) {
  // A part of a plan is of one tile: the actions of the next one would take the place of those left out.
  SocketWorld world(schedule, count, /*in_place=*/false, {.seed = seed, .slot_bytes = all ? 16U * 1024 : 512U * 1024});
  const auto succeeded = world.run_until_one_ends(ending, actions);
  for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
    const bool success = succeeded[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(success || rank == ending || !all) << "rank " << rank << " failed";
    if (success) world.check(rank);
  }
}

void end_everywhere(Collective collective, int ranks, std::uint64_t seed) {
  for (const Algorithm& algorithm : algorithms()) {
    const Shape shape{.collective = collective, .ranks = ranks, .root = ranks / 2};
    if (!algorithm.supports(shape)) continue;
    const Schedule schedule = algorithm.build(shape);
    for (Rank ending = 0; ending < ranks; ++ending) {
      for (const std::size_t count : {std::size_t{1}, count_of_tiles / static_cast<std::size_t>(ranks)}) {
        const std::size_t all = SocketWorld(schedule, count, /*in_place=*/false, {.seed = seed}).actions_of(ending);
        const std::size_t step = (all + ends_max - 1) / ends_max;
        for (std::size_t actions = all;; actions -= std::min(actions, std::max<std::size_t>(step, 1))) {
          SCOPED_TRACE(fmt::format("{} {}, {} ranks, {} elements: rank {} ends after {} of {} actions, seed {}",
                                   name(collective), algorithm.name, ranks, count, ending, actions, all, seed));
          end_once(schedule, count, ending, actions, actions == all, seed);
          if (::testing::Test::HasFailure()) return;
          if (actions == 0) break;
        }
      }
    }
  }
}

class EndOverSockets : public ::testing::TestWithParam<Collective> {};

TEST_P(EndOverSockets, AfterItsPartHarmsNobodyAndBeforeLeavesNobodyWaiting) {
  for (const std::uint64_t seed : seeds(1))
    for (const int ranks : {2, 3, 4}) end_everywhere(GetParam(), ranks, seed);
}

INSTANTIATE_TEST_SUITE_P(Simulated, EndOverSockets,
                         ::testing::Values(Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                           Collective::broadcast, Collective::all_to_all, Collective::reduce,
                                           Collective::gather, Collective::scatter, Collective::barrier,
                                           Collective::scan, Collective::ex_scan),
                         [](const auto& tested) { return std::string(name(tested.param)); });

}  // namespace
}  // namespace tutti
