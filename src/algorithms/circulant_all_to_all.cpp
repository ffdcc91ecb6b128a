// The reduce-scatter of the circulant graph, with blocks concatenated instead of added.
#include "algorithms/algorithm.h"
#include "algorithms/relay.h"
#include "algorithms/skips.h"

namespace tutti {
namespace {

/// Circulant all-to-all: in each step, every block that still has at least `skip` to travel moves `skip` ranks.
///
///   steps ceil(log2 n)   one message per rank and step   any n ≥ 2   scratch below n blocks
///   sent per rank at most n/2 blocks in each step
///
/// Unlike Bruck's algorithm it sends long messages over long distances first, and never more than half of the blocks in
/// a step.
/// Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", 2024.
LegsOf legs_of(int ranks, int) {
  return [skips = circulant_skips(ranks)](int distance, std::vector<Leg>& legs) {
    for (std::size_t i = 1; i < skips.size(); ++i) {
      if (distance < skips[i]) continue;
      legs.push_back({.step = static_cast<int>(i) - 1, .distance = skips[i]});
      distance -= skips[i];
    }
  };
}

}  // namespace

/// Other ranks' blocks wait in scratch.
const Family algorithm::circulant_all_to_all{.name = "circulant_all_to_all",
                                             .supports = supports_any_of<Collective::all_to_all>,
                                             .build = build_relay<legs_of>,
                                             .items = items_of_relay<legs_of>,
                                             .classes = Classes::one};

}  // namespace tutti
