// What all ranks know of where they are: levels and an order. Rank 0 makes it from what the ranks have said, and sends
// it to all, so that no two ranks see different ones.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/types.h"

namespace tutti {

struct JobMap {
  std::vector<Level> levels;  ///< as Shape::levels
  std::vector<Rank> order;    ///< as Shape::order; empty: by number
  bool operator==(const JobMap&) const = default;
};

/// One array of 32-bit numbers: how many levels, whether there is an order, the levels, the order.
std::vector<std::byte> to_bytes(const JobMap& map);

/// Errors: remote (not a map of so many ranks: another length, a group that no rank can have, an order that does not
/// name every rank once, a level that is not divided further than the one before).
Result<JobMap> read_job_map(std::span<const std::byte> bytes, int ranks);

/// "2 groups, then 4 groups; order 0 2 1 3", "one group": for people. A long order is cut.
std::string text_of(const JobMap& map);

}  // namespace tutti
