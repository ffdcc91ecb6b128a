// Partners at distance n/2, n/4, … exchange halves of the blocks that they still have to sum up.
#include "algorithms/algorithm.h"
#include "algorithms/butterfly.h"

namespace tutti {
namespace {

/// Recursive halving: of the blocks it still has, a rank sends those of its partner's half and sums up those of its own
/// half. If n is not a power of two, some odd ranks first take over the input of an even rank (fold).
///
///   steps log2 n          sent per rank bytes·(n-1)/n   scratch n/2 - 1 blocks   n a power of two
///   floor(log2 n) + 2     at most bytes                 n - 1 blocks             other n
///   order of sums: by rank in each addition
///
/// Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005.
Schedule build(const Shape& shape, int) {
  return halve(shape, Butterfly(shape.ranks, [](int i, int step, int size) { return i ^ (size >> (step + 1)); }));
}

}  // namespace

const Family algorithm::recursive_halving{.name = "recursive_halving",
                                          .supports = supports_any_of<Collective::reduce_scatter>,
                                          .build = build,
                                          .items = exchange_items,
                                          .classes = Classes::folded};

}  // namespace tutti
