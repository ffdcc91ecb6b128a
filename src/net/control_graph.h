// Which ranks have control connections to each other.
#pragma once

#include <vector>

namespace tutti {

/// The ranks to which `rank` has control connections: the ranks at distances 1, 2, 4, … before and after it that are on
/// other hosts. A rank that has none so, as where one rank is alone on its host, has one to the next rank of another
/// host, of at most 64 such. Ranks of one host see each other's state in shared memory. Together these links connect
/// all ranks, even if some are lost.
std::vector<int> control_neighbours(int rank, const std::vector<int>& hosts);

}  // namespace tutti
