// Every collective gives what it should: all pairs of collective and operator, type, count, values, in place or not,
// memory, alignment, root, number of ranks, how ranks are placed, transport and algorithm.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "support/property_space.h"
#include "support/reference_reduce.h"
#include "support/share.h"

namespace tutti::testing {
namespace {

std::uint64_t seed() {
  const char* const given = std::getenv("TUTTI_TEST_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

struct Plan {
  Set set;
  std::vector<Call> calls;
};

void PrintTo(const Plan& plan, std::ostream* out) {
  *out << name_of(plan.set);
}

/// Every pair of ranks, layout and transport, and each algorithm with some of them: there are too many of those to
/// start processes for each with every number of ranks, and their plans are proved for all of these.
std::vector<Row> sets() {
  const auto levels = space_levels();
  constexpr std::size_t algorithm = set_dimensions - 1;
  const auto algorithms = static_cast<std::size_t>(levels[algorithm]);
  const auto places = covering_array({levels.begin(), levels.begin() + algorithm}, seed());
  std::set<Row> all;
  for (std::size_t i = 0; i < std::max(places.size(), 2 * algorithms); ++i) {
    Row row = places[i % places.size()];
    row.push_back(static_cast<int>(i % algorithms));
    all.insert(std::move(row));
  }
  return {all.begin(), all.end()};
}

/// Every pair of all dimensions that these sets of processes have. In a share of them each set has a call at least.
std::vector<Plan> plans() {
  const auto levels = space_levels();
  const auto sets = testing::sets();
  const auto fits = [&sets](const Row& row) {
    return std::ranges::any_of(sets, [&](const Row& set) {
      return std::equal(set.begin(), set.end(), row.begin(), row.begin() + set_dimensions,
                        [](int given, int chosen) { return chosen < 0 || chosen == given; });
    });
  };
  std::vector<Plan> all;
  for (const auto& set : sets) all.push_back({.set = set_of(set), .calls = {}});
  std::uint64_t nth = 0;
  for (const auto& row : covering_array(levels, seed(), fits)) {
    const auto of = std::ranges::find_if(sets, [&](const Row& set) {
      return std::equal(set.begin(), set.end(), row.begin(), row.begin() + set_dimensions);
    });
    auto& calls = all[static_cast<std::size_t>(of - sets.begin())].calls;
    ++nth;
    if (calls.empty() || in_share(static_cast<int>(nth))) calls.push_back(call_of(row, mix(seed(), nth)));
  }
  return all;
}

class Properties : public ::testing::TestWithParam<Plan> {};

TEST_P(Properties, EveryCallGivesWhatItShould) {
  run_calls(GetParam().set, GetParam().calls, std::chrono::seconds(60), 2);
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
        count += same_bits(up, down) ? 0 : 1;
      }
      return count;
    });
    EXPECT_GT(differ, 20) << name(type);
  }
}

}  // namespace
}  // namespace tutti::testing
