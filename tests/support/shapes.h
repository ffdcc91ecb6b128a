// The calls that algorithms are tried on.
#pragma once

#include <string>
#include <vector>

#include "algorithms/algorithm.h"

namespace tutti::testing {

/// All collectives of so many ranks. Roots: all of them up to nine ranks, else the ends and some between.
inline std::vector<Shape> shapes(int ranks) {
  std::vector<Shape> all;
  for (int i = 0; i < collective_count; ++i) {
    const auto collective = static_cast<Collective>(i);
    for (Rank root = 0; root < (rooted(collective) ? ranks : 1); ++root)
      if (ranks <= 9 || root <= 1 || root == ranks / 2 || root == ranks - 1)
        all.push_back({.collective = collective, .ranks = ranks, .root = root});
  }
  return all;
}

inline std::string text(const Shape& shape) {
  return std::string(name(shape.collective)) + " of " + std::to_string(shape.ranks) + " ranks, root " +
         std::to_string(shape.root);
}
inline std::string text(const Algorithm& algorithm, const Shape& shape) {
  return std::string(algorithm.name) + ", " + text(shape);
}

/// `use(algorithm, shape)` for all that fit together.
template <class Use>
void for_every_algorithm(int ranks, Use use) {
  for (const Shape& shape : shapes(ranks))
    for (const Algorithm& algorithm : algorithms())
      if (algorithm.supports(shape)) use(algorithm, shape);
}

}  // namespace tutti::testing
