// Data travels from neighbour to neighbour.
#include "algorithms/algorithm.h"
#include "algorithms/rings.h"

namespace tutti {
namespace {

bool supports(const Shape& shape, int) {
  return shape.ranks > 1 && (shape.collective == Collective::all_reduce || shape.collective == Collective::all_gather ||
                             shape.collective == Collective::reduce_scatter);
}

/// Ring: all links carry the same amount; each rank communicates only with its neighbours.
///
///   all-reduce      steps 2(n-1)   sent per rank 2·bytes·(n-1)/n
///   reduce-scatter,
///   all-gather      steps n-1      sent per rank bytes·(n-1)/n     any n ≥ 2   order of sums: ring order
///
/// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009.
Schedule build(const Shape& shape, int) {
  const RingOrder in_order = ring_order(shape.ranks, 1);
  return along_rings(shape, {&in_order, 1});
}

/// A reduce-scatter's sums are in scratch when the neighbour reads them.
bool carried_by(Collective collective, Access access) {
  return access != Access::in_line && collective != Collective::reduce_scatter;
}

}  // namespace

const Family algorithm::ring{.name = "ring",
                             .supports = supports,
                             .build = build,
                             .carried_by = carried_by,
                             .items = one_item,
                             .classes = Classes::one};

}  // namespace tutti
