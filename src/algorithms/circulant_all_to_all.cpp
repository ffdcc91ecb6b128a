// The reduce-scatter of the circulant graph, with blocks concatenated instead of added.
#include "algorithms/algorithm.h"
#include "algorithms/relay.h"
#include "algorithms/skips.h"

namespace tutti {
namespace {

bool supports(const Shape& shape, int) {
  return shape.ranks > 1 && shape.collective == Collective::all_to_all;
}

/// Circulant all-to-all: in each step, every block that still has at least `skip` to travel moves `skip` ranks.
///
///   steps ceil(log2 n)   one message per rank and step   any n ≥ 2   scratch below n blocks
///   sent per rank at most n/2 blocks in each step
///
/// Unlike Bruck's algorithm it sends long messages over long distances first, and never more than half of the blocks in
/// a step.
/// Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", 2024.
Schedule build(const Shape& shape, int) {
  const std::vector<int> skips = circulant_skips(shape.ranks);
  std::vector<std::vector<Leg>> legs(static_cast<std::size_t>(shape.ranks));
  for (int distance = 1; distance < shape.ranks; ++distance) {
    int left = distance;
    for (std::size_t i = 1; i < skips.size(); ++i)
      if (left >= skips[i]) {
        legs[static_cast<std::size_t>(distance)].push_back({.step = static_cast<int>(i) - 1, .distance = skips[i]});
        left -= skips[i];
      }
  }
  return relay(shape, legs);
}

}  // namespace

/// Other ranks' blocks wait in scratch.
const Family algorithm::circulant_all_to_all{.name = "circulant_all_to_all", .supports = supports, .build = build};

}  // namespace tutti
