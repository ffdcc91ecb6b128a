// A tree whose root's children have subtrees of 1, 2, 4, … ranks.
#include "algorithms/algorithm.h"

namespace tutti {

/// Binomial tree: each step doubles the number of ranks that have the data (broadcast, scatter), or halves the number
/// of ranks that still hold some (reduce, gather).
///
///   steps ceil(log2 n)   sent per rank at most bytes·ceil(log2 n) (broadcast), bytes (reduce), bytes·(n-1)/n (scatter)
///   any n ≥ 2, any root   order of sums: by rank in each addition
///
/// That is the k-nomial tree of radix 2.
const Family algorithm::binomial{
    .name = "binomial",
    .supports = supports_any_of<Collective::broadcast, Collective::reduce, Collective::gather, Collective::scatter>,
    .build = build_as<algorithm::k_nomial, 2>,
    .carried_by = only_carried<Collective::broadcast>,
    .items = items_as<algorithm::k_nomial, 2>};

}  // namespace tutti
