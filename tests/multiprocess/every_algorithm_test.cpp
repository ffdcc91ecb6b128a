// Every algorithm that fits, forced by TUTTI_ALGO, at each number of ranks, as threads and as processes, over every
// transport that it serves: right results, and the same bits of an all-reduce on all ranks.
#include <array>
#include <map>

#include "algorithms/algorithm.h"
#include "support/call.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

/// Members of all families, one for each collective at most: what one start of ranks can be forced to use.
using Turn = std::map<Collective, const Algorithm*>;

std::vector<Turn> turns_of(int ranks) {
  std::vector<Turn> turns;
  for (int c = 0; c < collective_count; ++c) {
    const auto collective = static_cast<Collective>(c);
    std::size_t nth = 0;
    for (const Algorithm& algorithm : algorithms()) {
      if (!algorithm.supports({.collective = collective, .ranks = ranks})) continue;
      if (nth == turns.size()) turns.emplace_back();
      turns[nth++][collective] = &algorithm;
    }
  }
  return turns;
}

std::string setting(const Turn& turn) {
  std::string text = "TUTTI_ALGO=";
  for (const auto& [collective, algorithm] : turn) text += std::string(name(collective)) + ":" + algorithm->name + ";";
  return text;
}

/// Slots are of 4 KiB, so the larger ones are cut into many tiles; none travels in call lines but barriers.
std::vector<Call> calls_of(Collective collective, int ranks, Mix memory) {
  if (collective == Collective::barrier) return {{.kind = Kind::barrier}};
  const auto kind = static_cast<Kind>(collective);
  std::vector<Call> calls;
  for (const tuttiDataType_t type : {tuttiFloat32, tuttiUint8})
    for (const std::size_t bytes : {std::size_t{9'000}, std::size_t{150'000}}) {
      Call call{.kind = kind, .type = type, .memory = memory, .seed = 40 + calls.size()};
      call.values = kind == Kind::all_reduce && type == tuttiFloat32 ? Values::random
                    : testing::reduces(kind)                         ? Values::exact
                                                                     : Values::bits;
      call.count = count_for(kind, type, ranks, bytes) + 3;
      call.root = rooted(collective) && bytes > 9'000 ? ranks - 1 : 0;
      call.in_place = type == tuttiUint8 ? InPlace::some : InPlace::none;
      calls.push_back(call);
    }
  return calls;
}

Reach reach_named(const char* word) {
  for (const Reach reach : {Reach::line, Reach::window, Reach::pull, Reach::fifo})
    if (name(reach) == word) return reach;
  ADD_FAILURE() << "no such transport: " << word;
  return Reach::fifo;
}

/// Words of the board: how many calls used what they were forced to, by reach; then bits of all-reduces, by rank.
constexpr std::size_t first_hash = 8;

void run_rank(Seat& seat, const Turn& turn, Mix memory) {
  const auto comm = seat.init_one();
  ASSERT_NE(comm, nullptr);
  std::uint64_t bits = 0;
  for (const auto& [collective, algorithm] : turn)
    for (const Call& call : calls_of(collective, seat.ranks(), memory)) {
      std::uint64_t hash = 0;
      seat.doing(algorithm->name + ": " + call.text());
      ASSERT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}, 1, &hash), "") << algorithm->name << call.text();
      if (collective == Collective::all_reduce) bits = mix(bits, hash);
      const char* used = nullptr;
      const char* transport = nullptr;
      ASSERT_TRUE(ok(tuttiCommLastAlgorithm(comm, &used, &transport)));
      const Reach reach = reach_named(transport);
      const bool serving =
          serves(*algorithm, {.collective = collective, .ranks = seat.ranks(), .root = call.root}, reach);
      if (serving) {
        EXPECT_EQ(used, algorithm->name) << call.text();
        seat.board().word(static_cast<std::size_t>(reach)).fetch_add(1);
      } else {
        EXPECT_NE(used, algorithm->name) << call.text();
      }
    }
  seat.board().word(first_hash + static_cast<std::size_t>(seat.rank())).store(bits);
  EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
}

class EveryAlgorithm : public ::testing::TestWithParam<std::tuple<Layout, int>> {};

TEST_P(EveryAlgorithm, GivesWhatItShould) {
  const auto [layout, ranks] = GetParam();
  struct Way {
    const char* transport;
    Mix memory;
  };
  constexpr std::array ways = {Way{"fifo", Mix::heap}, Way{"window", Mix::mapped}, Way{"pull", Mix::heap}};
  std::array<std::uint64_t, 4> forced{};
  for (const Turn& turn : turns_of(ranks))
    for (const Way& way : ways) {
      Crew crew({.ranks = ranks,
                 .layout = layout,
                 .environment = {setting(turn), std::string("TUTTI_TRANSPORT=") + way.transport, "TUTTI_BUFFSIZE=4096"},
                 .limit = std::chrono::seconds(120),
                 .words = first_hash + static_cast<std::size_t>(ranks)},
                [&, now = way](Seat& seat) { run_rank(seat, turn, now.memory); });
      ASSERT_TRUE(crew.finish()) << setting(turn) << " over " << way.transport;
      for (std::size_t reach = 0; reach < forced.size(); ++reach) forced[reach] += crew.board().word(reach).load();
      for (int rank = 1; rank < ranks; ++rank)
        EXPECT_EQ(crew.board().word(first_hash + static_cast<std::size_t>(rank)), crew.board().word(first_hash))
            << setting(turn) << ", " << way.transport << ", rank " << rank;
    }
  std::cout << "calls by line " << forced[0] << ", window " << forced[1] << ", pull " << forced[2] << ", fifo "
            << forced[3] << "\n";
  EXPECT_GT(forced[static_cast<std::size_t>(Reach::window)], 0U);
  EXPECT_GT(forced[static_cast<std::size_t>(Reach::pull)], 0U);
  EXPECT_GT(forced[static_cast<std::size_t>(Reach::fifo)], 0U);
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
