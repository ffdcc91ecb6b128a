// A tree whose root's children have subtrees of 1, 2, 4, … ranks.
#include "algorithms/algorithm.h"

namespace tutti {
namespace {

constexpr int radix = 2;  // of the k-nomial tree that it is

/// Binomial tree: each step doubles the number of ranks that have the data (broadcast, scatter), or halves the number
/// of ranks that still hold some (reduce, gather).
///
///   steps ceil(log2 n)   sent per rank at most bytes·ceil(log2 n) (broadcast), bytes (reduce), bytes·(n-1)/n (scatter)
///   any n ≥ 2, any root   order of sums: by rank in each addition
Schedule build(const Shape& shape, int) {
  return algorithm::k_nomial.build(shape, radix);
}

int items(const Shape& shape, int) {
  return algorithm::k_nomial.items(shape, radix);
}

}  // namespace

const Family algorithm::binomial{
    .name = "binomial",
    .supports = supports_any_of<Collective::broadcast, Collective::reduce, Collective::gather, Collective::scatter>,
    .build = build,
    .carried_by = only_carried<Collective::broadcast>,
    .items = items};

}  // namespace tutti
