// Every algorithm that fits, forced by TUTTI_ALGO, at each number of ranks, as threads and as processes, over every
// transport that it serves: right results, and the same bits of an all-reduce on all ranks.
#include <array>

#include "support/forced_turns.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

void run_rank(Seat& seat, const Turn& turn, Mix memory) {
  const auto comm = seat.init_one();
  ASSERT_NE(comm, nullptr);
  run_turn(seat, comm, turn, memory);
  EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
}

class EveryAlgorithm : public ::testing::TestWithParam<std::tuple<Layout, int>> {};

TEST_P(EveryAlgorithm, GivesWhatItShould) {
  const auto [layout, ranks] = GetParam();
  struct Way {
    const char* transport;
    Mix memory;
  };
  std::vector<Way> ways = {{"slots", Mix::heap}, {"mapped", Mix::mapped}, {"cma", Mix::heap}};
  if (layout == Layout::processes) ways.push_back({"rdma", Mix::mapped});
  std::array<std::uint64_t, 4> forced{};
  for (const Turn& turn : turns_of(ranks))
    for (const Way& way : ways) {
      Workers workers(
          {.ranks = ranks,
           .layout = layout,
           .environment = {setting(turn), std::string("TUTTI_TRANSPORT=") + way.transport, "TUTTI_BUFFSIZE=4096"},
           .limit = std::chrono::seconds(120),
           .words = turn_words(ranks)},
          [&, now = way](Seat& seat) { run_rank(seat, turn, now.memory); });
      ASSERT_TRUE(workers.finish()) << setting(turn) << " over " << way.transport;
      for (std::size_t access = 0; access < forced.size(); ++access)
        forced[access] += workers.board().word(access).load();
      expect_same_bits(workers, ranks, setting(turn) + ", " + way.transport);
    }
  std::cout << "calls by line " << forced[0] << ", window " << forced[1] << ", pull " << forced[2] << ", fifo "
            << forced[3] << "\n";
  EXPECT_GT(forced[static_cast<std::size_t>(Access::mapped)], 0U);
  EXPECT_GT(forced[static_cast<std::size_t>(Access::cma)], 0U);
  EXPECT_GT(forced[static_cast<std::size_t>(Access::slots)], 0U);
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryAlgorithm,
                         ::testing::Combine(::testing::Values(Layout::threads, Layout::processes),
                                            ::testing::Range(2, 10)),
                         [](const auto& test) {
                           return std::string(name(std::get<0>(test.param))) + "_" +
                                  std::to_string(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace tutti::testing
