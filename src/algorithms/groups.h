// Groups of ranks that are near each other.
#pragma once

#include <vector>

#include "plan/types.h"

namespace tutti {

using Groups = std::vector<std::vector<Rank>>;

/// Groups of `size` consecutive ranks; with size 0, those of the innermost level that has several groups, not all with
/// one rank. Empty if there are none: fewer than two groups, or `size` does not divide the number of ranks.
Groups near_groups(const Shape& shape, int size);

/// Whether they all have one size.
bool are_alike(const Groups& groups);

/// Where a rank is: its group, and its place there; nowhere if `rank` is everybody.
struct Member {
  int group = Shape::everybody;
  int place = Shape::everybody;
};

Member find_member(const Groups& groups, Rank rank);

}  // namespace tutti
