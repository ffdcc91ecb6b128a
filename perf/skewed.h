// Counts for collectives with a count per rank: later blocks are larger, with the same total as equal blocks.
#pragma once

#include <cstddef>
#include <vector>

#include "perf/harness.h"

namespace perf {

/// Of ranks · count elements, block r gets a part proportional to r + 1: with four ranks 10, 20, 30 and 40 percent.
/// `turned`: the block with the smallest part.
inline std::vector<std::size_t> skewed_counts(const Call& call, int turned = 0) {
  const auto n = static_cast<std::size_t>(call.ranks);
  const auto before = [&](std::size_t block) {  // elements in the blocks before this one
    return static_cast<std::size_t>(static_cast<double>(n * call.count) * static_cast<double>(block * (block + 1)) /
                                    static_cast<double>(n * (n + 1)));
  };
  std::vector<std::size_t> counts;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t block = (i + static_cast<std::size_t>(turned)) % n;
    counts.push_back((block + 1 == n ? n * call.count : before(block + 1)) - before(block));
  }
  return counts;
}

/// Elements in the blocks before `rank`'s.
inline std::size_t sum_before(const std::vector<std::size_t>& counts, int rank) {
  std::size_t sum = 0;
  for (int i = 0; i < rank; ++i) sum += counts[static_cast<std::size_t>(i)];
  return sum;
}

}  // namespace perf
