// Partners at distance 1, 2, 4, … exchange halves, then, in reverse order, the results.
#include "algorithms/algorithm.h"
#include "algorithms/butterfly.h"

namespace tutti {
namespace {

/// Recursive halving and doubling: a reduce-scatter that halves the vector and doubles the distance in each step, then
/// an all-gather that runs backwards. Most bytes travel between the nearest ranks. If n is not a power of two, some odd
/// ranks first take over the vector of an even rank (fold).
///
///   steps 2·log2 n         sent per rank 2·bytes·(n-1)/n   n a power of two
///   2·floor(log2 n) + 2    and bytes more                  other n
///   order of sums: by rank in each addition
///
/// Rabenseifner, "Optimization of collective reduction operations", ICCS 2004.
Schedule build(const Shape& shape, int) {
  const Butterfly butterfly(shape.ranks, [](int i, int step, int) { return i ^ (1 << step); });
  return halve_and_double(shape, butterfly, butterfly.contiguous());
}

}  // namespace

const Family algorithm::halving_doubling{.name = "halving_doubling",
                                         .supports = supports_any_of<Collective::all_reduce>,
                                         .build = build,
                                         .carried_by = carried_except_inline,
                                         .items = exchange_items,
                                         .classes = Classes::folded};

}  // namespace tutti
