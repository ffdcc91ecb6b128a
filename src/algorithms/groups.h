// Which ranks are near each other.
#pragma once

#include <vector>

#include "plan/types.h"

namespace tutti {

using Groups = std::vector<std::vector<Rank>>;

/// Groups of `size` consecutive ranks; with size 0 those of the innermost level that has several, not all of one rank.
/// Empty where there are none: fewer than two, or `size` does not divide the number of ranks.
Groups near_groups(const Shape& shape, int size);

}  // namespace tutti
