// The distances of a circulant graph with logarithmic diameter.
#pragma once

#include <vector>

namespace tutti {

/// n halved, rounded up, until 1: n, …, 3 or 4, 2, 1. Ranks at all these distances but the first, ceil(log2 n) of them,
/// are neighbours; every distance below n is a sum of some, each taken at most once.
///
/// Träff, "Optimal broadcast schedules in logarithmic time with applications to broadcast, all-broadcast, reduction and
/// all-reduction", 2024.
inline std::vector<int> circulant_skips(int n) {
  std::vector<int> skips{n};
  while (skips.back() > 1) skips.push_back((skips.back() + 1) / 2);
  return skips;
}

}  // namespace tutti
