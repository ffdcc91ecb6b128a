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
constexpr int ranks_of_tiles_max = 5;           // with more, one element each: the plans are the same
constexpr int sanitized_percent = 8;            // of the ends within a plan: all of them take minutes there

/// A rank that ends somewhere in its plan.
struct Ending {
  Rank rank = 0;
  std::size_t actions = 0;  ///< that it does
  bool all = false;         ///< of its plan
};

/// A part of a plan is of one tile: the actions of the next one would take the place of those left out.
std::size_t slot_bytes(std::size_t count, const Ending& ending) {
  if (ending.all) return 16UL * 1024;
  return count == 1 ? 4096 : 96UL * 1024;
}

void end_once(const Schedule& schedule, std::size_t count, const Ending& ending, std::uint64_t seed) {
  SocketWorld world(schedule, count, /*in_place=*/false, {.seed = seed, .slot_bytes = slot_bytes(count, ending)});
  const auto succeeded = world.run_until_one_ends(ending.rank, ending.actions);
  for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
    const bool success = succeeded[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(success || rank == ending.rank || !ending.all) << "rank " << rank << " failed";
    if (success) world.check(rank);
  }
}

/// Returns how many ends there were.
int end_at_each_action(const Schedule& schedule, std::string_view what, std::size_t count, std::uint64_t seed) {
  int ends = 0;
  for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
    const std::size_t all = SocketWorld(schedule, count, /*in_place=*/false, {.seed = seed}).actions_of(rank);
    for (std::size_t actions = 0; actions <= all; ++actions) {
      if (actions < all && !in_share(static_cast<int>(actions) + rank, sanitized_percent)) continue;
      SCOPED_TRACE(fmt::format("{}, {} elements: rank {} ends after {} of {} actions, seed {}", what, count, rank,
                               actions, all, seed));
      end_once(schedule, count, {.rank = rank, .actions = actions, .all = actions == all}, seed);
      if (::testing::Test::HasFailure()) return ends;
      ++ends;
    }
  }
  return ends;
}

int end_everywhere(Collective collective, int ranks, std::uint64_t seed) {
  int ends = 0;
  for (const Algorithm& algorithm : algorithms()) {
    const Shape shape{.collective = collective, .ranks = ranks, .root = ranks / 2};
    if (!algorithm.supports(shape)) continue;
    const Schedule schedule = algorithm.build(shape);
    const std::string what = fmt::format("{} {}, {} ranks", name(collective), algorithm.name, ranks);
    ends += end_at_each_action(schedule, what, 1, seed);
    if (ranks <= ranks_of_tiles_max)
      ends += end_at_each_action(schedule, what, count_of_tiles / static_cast<std::size_t>(ranks), seed);
    if (::testing::Test::HasFailure()) break;
  }
  return ends;
}

class EndOverSockets : public ::testing::TestWithParam<Collective> {};

TEST_P(EndOverSockets, AfterItsPartHarmsNobodyAndBeforeLeavesNobodyWaiting) {
  for (const std::uint64_t seed : seeds(1))
    for (const int ranks : {2, 3, 4, 5, 8}) {
      const int ends = end_everywhere(GetParam(), ranks, seed);
      if (HasFailure()) return;
      EXPECT_GT(ends, ranks) << "no algorithm makes this of " << ranks << " ranks";
    }
}

INSTANTIATE_TEST_SUITE_P(Simulated, EndOverSockets,
                         ::testing::Values(Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                           Collective::broadcast, Collective::all_to_all, Collective::reduce,
                                           Collective::gather, Collective::scatter, Collective::barrier,
                                           Collective::scan, Collective::ex_scan),
                         [](const auto& tested) { return std::string(name(tested.param)); });

}  // namespace
}  // namespace tutti
