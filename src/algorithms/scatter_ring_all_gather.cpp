// A broadcast by a scatter, then a ring.
#include "algorithms/algorithm.h"
#include "algorithms/spread.h"

namespace tutti {

/// Scatter and ring all-gather: the root distributes n-th parts down a binomial tree, then the parts go around a ring.
///
///   steps ceil(log2 n) + n-1   sent per rank at most 2·bytes·(n-1)/n   any n ≥ 2, any root
///
/// Barnett, Gupta, Payne, Shuler, van de Geijn and Watts, "Interprocessor collective communication library (InterCom)",
/// 1994.
const Family algorithm::scatter_ring_all_gather{.name = "scatter_ring_all_gather",
                                                .supports = supports_any_of<Collective::broadcast>,
                                                .build = scatter_then_ring,
                                                .carried_by = carried_except_inline};

}  // namespace tutti
