// Every collective gives what it should in the full product of what the properties test covers pairwise: a fraction of
// it that is drawn alike every time, or all.
#include <cstdlib>
#include <iostream>

#include "support/property_space.h"

namespace tutti::testing {
namespace {

/// Of the distinct calls, so many that all sets together take two cores about half an hour.
constexpr double usual_fraction = 1.0 / 2000;

std::uint64_t seed() {
  const char* const given = std::getenv("TUTTI_TEST_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

double fraction() {
  const char* const given = std::getenv("TUTTI_TEST_FRACTION");
  return given == nullptr ? usual_fraction : std::strtod(given, nullptr);
}

/// The next row in counting order, of the dimensions from `first` on; false after the last.
bool next(Row& row, const std::vector<int>& levels, std::size_t first) {
  for (std::size_t d = row.size(); d-- > first;) {
    if (++row[d] < levels[d]) return true;
    row[d] = 0;
  }
  return false;
}

/// Rows of the first dimensions under which there is any call that no other set makes.
std::vector<Row> sets() {
  const auto levels = space_levels();
  const std::vector<int> chosen(levels.begin(), levels.begin() + set_dimensions);
  std::vector<Row> all;
  Row set(set_dimensions, 0);
  do {
    Row row = set;
    row.resize(levels.size(), 0);
    bool any = false;
    do any = !redundant(row);
    while (!any && ++row[set_dimensions] < levels[set_dimensions]);
    if (any) all.push_back(set);
  } while (next(set, chosen, 0));
  return all;
}

class FullProduct : public ::testing::TestWithParam<Row> {
 protected:
  static void TearDownTestSuite() {
    std::cout << "made " << made_ << " calls of " << there_are_ << ", TUTTI_TEST_FRACTION=" << fraction() << "\n";
  }
  static inline std::uint64_t made_ = 0;
  static inline std::uint64_t there_are_ = 0;
};

TEST_P(FullProduct, EveryCallGivesWhatItShould) {
  constexpr std::size_t piece = 1000;  // calls of one team: a hang is noticed after those, not after all of them
  constexpr std::chrono::seconds limit(900);
  const auto levels = space_levels();
  const Set set = set_of(GetParam());
  // The same calls whatever else is run, and those of a small fraction are among those of a larger one.
  std::uint64_t draw = seed();
  for (const int value : GetParam()) draw = mix(draw, static_cast<std::uint64_t>(value));
  const double below = fraction() * 0x1p53;
  Row row = GetParam();
  row.resize(levels.size(), 0);
  std::vector<Call> calls;
  std::uint64_t nth = 0;
  std::uint64_t chosen = 0;
  const auto run = [&] {
    if (!calls.empty()) run_calls(set, calls, limit, 1);
    made_ += calls.size();
    chosen += calls.size();
    calls.clear();
  };
  do {
    if (redundant(row)) continue;
    ++there_are_;
    ++nth;
    const std::uint64_t random = mix(draw, nth);
    if (static_cast<double>(random >> 11) < below) calls.push_back(call_of(row, random));
    if (calls.size() == piece) run();
    if (HasFailure()) return;
  } while (next(row, levels, set_dimensions));
  run();
  EXPECT_GT(nth, 0u);
  if (fraction() >= 1) {
    EXPECT_EQ(chosen, nth);
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, FullProduct, ::testing::ValuesIn(sets()),
                         [](const auto& test) { return name_of(set_of(test.param)); });

}  // namespace
}  // namespace tutti::testing
