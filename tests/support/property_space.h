// The space that property tests cover: how ranks are placed and reach each other, and every kind of call they make.
#pragma once

#include <string>
#include <vector>

#include "support/call.h"
#include "support/covering_array.h"
#include "support/launch_ranks.h"

namespace tutti::testing {

/// Values per dimension of a Row. The first four are chosen when processes start: ranks, layout, transport, algorithm;
/// the others call by call: collective and operator, type, count, values, in place, memory, alignment, root.
std::vector<int> space_levels();
inline constexpr std::size_t set_dimensions = 4;

/// What is chosen when processes start.
struct Set {
  int ranks;
  Layout layout;
  std::string transport;
  std::string algorithm;  ///< as in TUTTI_ALGO; "": any
};
Set set_of(const Row& row);
std::string name_of(const Set& set);

Call call_of(const Row& row, std::uint64_t seed);

/// Whether a row of lower values says the same: operators of what reduces nothing, roots of what has none, algorithms
/// that do not serve the collective, and the like. Of a row with open places: whether it is so whatever they are.
bool redundant(const Row& row);

/// All calls on one communicator, each `times` times; then all-reduces are compared between ranks. Fails the test.
void run_calls(const Set& set, const std::vector<Call>& calls, std::chrono::seconds limit, int times);

}  // namespace tutti::testing
