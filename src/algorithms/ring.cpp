// Data travels from neighbour to neighbour.
#include "algorithms/algorithm.h"
#include "algorithms/rings.h"

namespace tutti {
namespace {

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

}  // namespace

const Family algorithm::ring{
    .name = "ring",
    .supports = supports_any_of<Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter>,
    .build = build,
    .carried_by = carried_except<Collective::reduce_scatter>,
    .items = one_item,
    .classes = Classes::one};

}  // namespace tutti
