// A broadcast in two halves of logarithmic steps.
#include "algorithms/algorithm.h"
#include "algorithms/spread.h"

namespace tutti {

/// Scatter and all-gather: the root distributes n-th parts down a binomial tree, then all ranks gather all parts.
///
///   steps 2·ceil(log2 n)   sent per rank at most 2·bytes·(n-1)/n   any n ≥ 2, any root
///
/// The all-gather is that of the circulant graph, which for powers of two has the steps and bytes of recursive
/// doubling. Barnett, Gupta, Payne, Shuler, van de Geijn and Watts, "Interprocessor collective communication library
/// (InterCom)", 1994; Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
/// IJHPCA 2005.
const Family algorithm::scatter_all_gather{.name = "scatter_all_gather",
                                           .supports = supports_any_of<Collective::broadcast>,
                                           .build = scatter_then_circulant,
                                           .carried_by = carried_except_inline};

}  // namespace tutti
