#include "algorithms/ways.h"

#include <algorithm>

namespace tutti {

Ways choose_ways(const WayEnvelopes& envelopes) {
  Ways ways;
  for (std::size_t width = 1; width < 65; ++width) {
    const std::size_t size = std::size_t{1} << (width - 1);
    const auto us = [size](const Envelope* envelope) {
      return envelope == nullptr ? std::numeric_limits<double>::infinity() : envelope->us(size);
    };
    const bool smaller_too = width == 1 || ways.inline_below == size;
    if (smaller_too && us(envelopes.in_line) <= us(envelopes.mapped)) ways.inline_below = 2 * size;
    ways.pulls[width] = us(envelopes.cma) < us(envelopes.slots);
    ways.pulls_huge[width] = us(envelopes.cma_huge) < us(envelopes.slots);
    ways.carries[width] = us(envelopes.in_line) < std::min(us(envelopes.cma), us(envelopes.slots));
  }
  return ways;
}

Shape shape_for_ways(const Shape& shape) {
  Shape modelled = shape;
  modelled.root = 0;
  if (shape.ranks <= modelled_ranks_max) return modelled;
  modelled.ranks = modelled_ranks_max;
  modelled.levels.clear();
  return modelled;
}

Conditions conditions_for_ways(const Shape& shape, Conditions conditions) {
  if (shape.ranks > modelled_ranks_max)
    conditions.cores = std::max(1, conditions.cores * modelled_ranks_max / shape.ranks);
  return conditions;
}

}  // namespace tutti
