// Every collective gives what it should: all pairs of collective and operator, type, count, values, in place or not,
// memory, alignment, root, number of ranks, how ranks are placed, transport and algorithm.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "support/call.h"
#include "support/covering_array.h"
#include "support/launch_ranks.h"
#include "support/reference_reduce.h"

namespace tutti::testing {
namespace {

std::uint64_t seed() {
  const char* const given = std::getenv("TUTTI_TEST_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

constexpr std::array transports = {"auto", "fifo", "window", "pull"};
constexpr std::array algorithms = {"", "one_shot", "two_shot"};
constexpr int ranks_max = 9;
constexpr int layouts = 4;
/// Reductions with each operator, and the others.
constexpr int what_count = 3 * op_count + kind_count - 3;

/// What is chosen when processes start.
struct Set {
  int ranks;
  Layout layout;
  int transport;
  int algorithm;
};

std::vector<Set> sets() {
  std::vector<Set> all;
  for (const auto& row : covering_array({ranks_max, layouts, transports.size(), algorithms.size()}, seed()))
    all.push_back({row[0] + 1, static_cast<Layout>(row[1]), row[2], row[3]});
  return all;
}

std::string name_of(const Set& set) {
  return fmt::format("{}_{}_{}_{}", name(set.layout), set.ranks, transports[set.transport],
                     set.algorithm == 0 ? "any" : algorithms[set.algorithm]);
}

std::size_t count_of(int level, Kind kind, tuttiDataType_t type, int ranks) {
  switch (level) {
    case 0: return 0;
    case 1: return 1;
    case 2: return 37;
    case 3: return count_for(kind, type, ranks, 4096);  // just fits a call line
    case 4: return count_for(kind, type, ranks, 4096) + 1;
    case 5: return count_for(kind, type, ranks, 5 * 65536) + 13;  // several slots
    default: return count_for(kind, type, ranks, 1 << 20) + 7;
  }
}
constexpr int count_levels = 7;

std::pair<Kind, Op> what_of(int level) {
  constexpr std::array reductions = {Kind::all_reduce, Kind::reduce, Kind::reduce_scatter};
  if (level < 3 * op_count) return {reductions[level / op_count], static_cast<Op>(level % op_count)};
  constexpr std::array others = {Kind::broadcast, Kind::all_gather, Kind::all_to_all,
                                 Kind::gather,    Kind::scatter,    Kind::barrier};
  return {others[level - 3 * op_count], Op::sum};
}

/// Row: ranks, layout, transport, algorithm, then what, type, count, values, in place, memory, alignment, root.
Call call_of(const Row& row, std::uint64_t call_seed) {
  const int ranks = row[0] + 1;
  const auto [kind, op] = what_of(row[4]);
  Call call{.kind = kind, .type = static_cast<tuttiDataType_t>(row[5]), .op = op};
  call.count = count_of(row[6], kind, call.type, ranks);
  call.values = reduces(kind) ? static_cast<Values>(row[7] + 1) : Values::bits;
  call.in_place = static_cast<InPlace>(row[8]);
  call.memory = static_cast<Mix>(row[9]);
  call.misaligned = row[10] == 0 ? 0 : (row[10] == 1 ? size_of(call.type) : 1);
  call.root = row[11] == 0 ? 0 : (row[11] == 1 ? ranks - 1 : static_cast<int>(call_seed % ranks));
  call.seed = call_seed;
  return call;
}

struct Plan {
  Set set;
  std::vector<Call> calls;
};

void PrintTo(const Plan& plan, std::ostream* out) {
  *out << name_of(plan.set);
}

std::vector<Plan> plans() {
  std::vector<Plan> all;
  for (const auto& set : sets()) all.push_back({.set = set, .calls = {}});
  const auto fits = [&all](const Row& row) {
    const auto agrees = [](int chosen, int given) { return chosen < 0 || chosen == given; };
    return std::ranges::any_of(all, [&](const Plan& plan) {
      return agrees(row[0], plan.set.ranks - 1) && agrees(row[1], static_cast<int>(plan.set.layout)) &&
             agrees(row[2], plan.set.transport) && agrees(row[3], plan.set.algorithm);
    });
  };
  const std::vector<int> levels = {ranks_max,         layouts,    transports.size(),
                                   algorithms.size(), what_count, tuttiNumTypes,
                                   count_levels,      3,          3,
                                   mix_count,         3,          3};
  std::uint64_t nth = 0;
  for (const auto& row : covering_array(levels, seed(), fits))
    for (auto& plan : all)
      if (plan.set.ranks == row[0] + 1 && plan.set.layout == static_cast<Layout>(row[1]) &&
          plan.set.transport == row[2] && plan.set.algorithm == row[3])
        plan.calls.push_back(call_of(row, mix(seed(), ++nth)));
  return all;
}

std::vector<std::string> environment(const Set& set) {
  return {std::string("TUTTI_TRANSPORT=") + transports[set.transport],
          std::string("TUTTI_ALGO=") + algorithms[set.algorithm]};
}

/// All calls on one communicator; then all-reduces are compared between ranks.
void run_calls(const Set& set, const std::vector<Call>& calls, std::chrono::seconds limit, int times) {
  const Team team{.ranks = set.ranks,
                  .layout = set.layout,
                  .environment = environment(set),
                  .limit = limit,
                  .words = calls.size() * static_cast<std::size_t>(set.ranks)};
  Crew crew(team, [&](Seat& seat) {
    const auto comms = seat.init();
    ASSERT_EQ(comms.size(), seat.here().size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      seat.doing(calls[i].text());
      std::uint64_t hash = 0;
      const auto wrong = run_call(calls[i], seat.here(), seat.ranks(), comms, times, &hash);
      ASSERT_EQ(wrong, "") << calls[i].text();
      for (const int rank : seat.here()) seat.board().word(i * seat.ranks() + rank).store(hash);
    }
    seat.doing("destroy");
    for (const auto comm : comms) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
  ASSERT_TRUE(crew.finish());
  for (std::size_t i = 0; i < calls.size(); ++i)
    for (int rank = 1; rank < set.ranks && calls[i].kind == Kind::all_reduce; ++rank)
      EXPECT_EQ(crew.board().word(i * set.ranks + rank), crew.board().word(i * set.ranks))
          << "rank " << rank << " has other bits than rank 0: " << calls[i].text();
}

class Properties : public ::testing::TestWithParam<Plan> {};

TEST_P(Properties, EveryCallGivesWhatItShould) {
  run_calls(GetParam().set, GetParam().calls, std::chrono::seconds(60), 3);
}

INSTANTIATE_TEST_SUITE_P(Pairwise, Properties, ::testing::ValuesIn(plans()),
                         [](const auto& test) { return name_of(test.param.set); });

TEST(CoveringArray, HoldsEveryAllowedPair) {
  const std::vector<int> levels = {5, 3, 4, 2, 6};
  const auto allowed = [](const Row& row) { return row[0] != 2 || row[1] != 1; };
  const auto rows = covering_array(levels, seed(), allowed);
  EXPECT_LT(rows.size(), 60u);
  for (std::size_t a = 0; a < levels.size(); ++a)
    for (std::size_t b = a + 1; b < levels.size(); ++b)
      for (int x = 0; x < levels[a]; ++x)
        for (int y = 0; y < levels[b]; ++y) {
          const bool there = std::ranges::any_of(rows, [&](const Row& row) { return row[a] == x && row[b] == y; });
          EXPECT_EQ(there, !(a == 0 && b == 1 && x == 2 && y == 1)) << a << "=" << x << " " << b << "=" << y;
        }
}

/// Without this, "the same bits on every rank" would say nothing.
TEST(RandomInputs, ShowTheOrderOfReduction) {
  for (const auto type : {tuttiFloat16, tuttiFloat32, tuttiFloat64, tuttiBfloat16}) {
    const Inputs in{.type = type, .values = Values::random, .ranks = 3, .seed = seed()};
    const int differ = with_type(type, [&]<class T>(T*) {
      int count = 0;
      for (std::size_t i = 0; i < 1000; ++i) {
        const T up = sum_in_order<T>(in, i, true);
        const T down = sum_in_order<T>(in, i, false);
        count += std::memcmp(&up, &down, sizeof up) != 0 ? 1 : 0;
      }
      return count;
    });
    EXPECT_GT(differ, 20) << name(type);
  }
}

}  // namespace
}  // namespace tutti::testing
