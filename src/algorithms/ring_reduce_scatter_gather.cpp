// A reduce around a ring, followed by a gather.
#include "algorithms/algorithm.h"
#include "algorithms/spread.h"

namespace tutti {

/// Ring reduce-scatter and gather: each rank's n-th part is summed up around a ring, then the root gathers the parts up
/// a binomial tree.
///
///   steps n-1 + ceil(log2 n)   sent per rank bytes, received at most 2·bytes·(n-1)/n, by the root
///   any n ≥ 2, any root
///   order of sums: ring order
const Family algorithm::ring_reduce_scatter_gather{
    .name = "ring_reduce_scatter_gather", .supports = supports_any_of<Collective::reduce>, .build = scatter_then_ring};

}  // namespace tutti
