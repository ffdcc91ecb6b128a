// A reduce in two halves of logarithmic steps.
#include "algorithms/algorithm.h"
#include "algorithms/spread.h"

namespace tutti {

/// Reduce-scatter and gather: each rank sums up one n-th part, then the root gathers the parts up a binomial tree.
///
///   steps 2·ceil(log2 n)   sent per rank bytes, received at most 2·bytes·(n-1)/n, by the root   any n ≥ 2, any root
///   order of sums: by rank in each addition
///
/// Rabenseifner, "Optimization of collective reduction operations", ICCS 2004; here on the circulant graph, for any n.
const Family algorithm::reduce_scatter_gather{
    .name = "reduce_scatter_gather", .supports = supports_any_of<Collective::reduce>, .build = scatter_then_circulant};

}  // namespace tutti
