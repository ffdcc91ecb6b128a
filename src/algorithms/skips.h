// The distances of a circulant graph with logarithmic diameter.
#pragma once

#include <vector>

namespace tutti {

/// n halved, rounded up, until 1: n, …, 3 or 4, 2, 1. Ranks at these distances, except the first, are neighbours:
/// ceil(log2 n) of them. Every distance below n is a sum of some of these, each taken at most once.
///
/// Träff, "Optimal broadcast schedules in logarithmic time with applications to broadcast, all-broadcast, reduction and
/// all-reduction", 2024.
inline std::vector<int> circulant_skips(int n) {
  std::vector<int> skips{n};
  while (skips.back() > 1) skips.push_back((skips.back() + 1) / 2);
  return skips;
}

}  // namespace tutti
