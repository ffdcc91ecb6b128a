// Two rings over the same links, one in each direction.
#include "algorithms/algorithm.h"
#include "algorithms/rings.h"

namespace tutti {
namespace {

bool supports(const Shape& shape, int) {
  return shape.ranks > 2 && algorithm::ring.supports(shape, 0);
}

/// Bidirectional ring: half of the data travels around in one direction, half in the other, so a link is full in both
/// directions.
///
///   all-reduce      steps 2(n-1)   sent per rank and direction bytes·(n-1)/n
///   reduce-scatter,
///   all-gather      steps n-1      sent per rank and direction bytes/2·(n-1)/n   any n ≥ 3   order of sums: ring order
///
/// Two ranks have one link, which a plain ring already fills in both directions.
/// Jain and Sabharwal, "Optimal bucket algorithms for large MPI collectives on torus interconnects", ICS 2010.
Schedule build(const Shape& shape, int) {
  const RingOrder ways[] = {ring_order(shape.ranks, 1), ring_order(shape.ranks, shape.ranks - 1)};
  return along_rings(shape, ways);
}

}  // namespace

const Family algorithm::bidirectional_ring{.name = "bidirectional_ring",
                                           .supports = supports,
                                           .build = build,
                                           .carried_by = carried_except<Collective::reduce_scatter>,
                                           .items = one_item,
                                           .classes = Classes::one};

}  // namespace tutti
