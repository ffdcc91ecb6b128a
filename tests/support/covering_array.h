// Few rows in which every pair of values of two dimensions occurs: most mistakes need two circumstances, few need
// three.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tutti::testing {

using Row = std::vector<int>;  ///< a value per dimension; −1: open

/// `levels[d]` values in dimension d. `allowed` says of a row with open places whether some choice for them is allowed;
/// pairs that are not allowed are left out. Greedy; the same rows for the same seed.
std::vector<Row> covering_array(
    const std::vector<int>& levels, std::uint64_t seed,
    const std::function<bool(const Row&)>& allowed = [](const Row&) { return true; });

}  // namespace tutti::testing
