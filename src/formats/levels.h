// Assigns steps to items of which some must come before others.
#pragma once

#include <span>
#include <vector>

namespace tutti::formats {

/// `to` comes in a later step than `from`; if not `later`, in the same or a later step.
struct Before {
  int from = 0;
  int to = 0;
  bool later = true;
};

struct Levels {
  std::vector<int> step;  ///< by node: the first possible step; empty: there is no assignment, see knot
  std::vector<int> knot;  ///< by node: those with one number (not 0) would have to be in one step and in sequence
};

/// Requires ends below `nodes`.
Levels levels(int nodes, std::span<const Before> edges);

}  // namespace tutti::formats
