// Steps for things of which some must come before others.
#pragma once

#include <span>
#include <vector>

namespace tutti::formats {

/// `to` comes in a later step than `from`; or, where not `later`, in no earlier one.
struct Before {
  int from = 0;
  int to = 0;
  bool later = true;
};

struct Levels {
  std::vector<int> step;  ///< by node: the first that is possible. Empty: there is none, because of
  std::vector<int> knot;  ///< by node: nodes of one number (not 0) must be in one step, and yet one after the other
};

/// Requires ends below `nodes`.
Levels levels(int nodes, std::span<const Before> edges);

}  // namespace tutti::formats
