// A broadcast by a scatter, then a ring.
#include "algorithms/algorithm.h"
#include "algorithms/scatter_spread.h"

namespace tutti {
namespace {

bool supports(const Shape& shape, int) {
  return shape.ranks > 1 && shape.collective == Collective::broadcast;
}

/// Scatter and ring all-gather: the root distributes n-th parts down a binomial tree, then the parts go around a ring.
///
///   steps ceil(log2 n) + n-1   sent per rank at most 2·bytes·(n-1)/n   any n ≥ 2, any root
///
/// Barnett, Gupta, Payne, Shuler, van de Geijn and Watts, "Interprocessor collective communication library (InterCom)",
/// 1994.
Schedule build(const Shape& shape, int) {
  return scatter_then_ring(shape);
}

}  // namespace

const Family algorithm::scatter_ring_all_gather{
    .name = "scatter_ring_all_gather", .supports = supports, .build = build, .carried_by = carried_except_inline};

}  // namespace tutti
