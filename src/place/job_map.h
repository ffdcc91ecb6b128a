// What all ranks know of where they are: levels, an order and rings. Rank 0 makes it from what the ranks have said, and
// sends it to all, so that no two ranks see different ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/types.h"

namespace tutti {

struct JobMap {
  std::vector<Level> levels;                  ///< as Shape::levels
  std::vector<Rank> order;                    ///< as Shape::order; empty: by number
  std::vector<std::vector<Rank>> rings = {};  ///< as Shape::rings: at most rings_max
  /// MB/s from each rank to each other, by from · ranks + to, 0 where the measured numbers hold; empty: everywhere.
  std::vector<std::uint32_t> pair_mbps = {};
  bool operator==(const JobMap&) const = default;
};

inline constexpr std::size_t rings_max = 8;
inline constexpr std::size_t paired_ranks_max = 16;  ///< up to so many ranks have rates of pairs

/// How many rings a map of so many ranks may have besides its levels and its order: at most rings_max, and none if not
/// two. A ring of thousands of ranks is slow, and all ranks would keep eight of them.
std::size_t rings_that_fit(const JobMap& map, std::size_t ranks);

/// One array of 32-bit numbers, packed (packed_words.h): how many levels, whether there is an order, how many rings,
/// whether there are rates of pairs; the levels, the order, the rings, the rates. Of 24,576 ranks with four levels and
/// an order, numbered with a pattern, about a hundred bytes; at random, some hundred thousand.
std::vector<std::byte> to_bytes(const JobMap& map);
/// No map of so many ranks is longer.
std::size_t map_bytes_max(int ranks);

/// Errors: remote (not a map of so many ranks: another length, a group that no rank can have, an order or a ring that
/// does not name every rank once, too many rings, rates of too many pairs, a level that is not divided further than the
/// one before).
Result<JobMap> read_job_map(std::span<const std::byte> bytes, int ranks);

/// "2 groups, then 4 groups; order 0 2 1 3; 2 rings: 0 2 1 3 | 2 0 3 1", "one group": for people. Long orders are cut.
std::string text_of(const JobMap& map);

}  // namespace tutti
