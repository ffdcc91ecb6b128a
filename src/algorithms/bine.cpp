// A butterfly of negabinary numbers, with its own order of blocks.
#include "algorithms/algorithm.h"
#include "algorithms/butterfly.h"

namespace tutti {
namespace {

/// Bine (binomial negabinary): halving with doubling distance, then doubling with halving distance. The numbers of
/// partners, written to base -2, differ by a row of ones; these are the partners of swing. In addition, blocks are
/// numbered so that everything a rank sends in a step is contiguous memory. If n is not a power of two, some odd ranks
/// first take over the vector of an even rank (fold).
///
///   steps 2·log2 n         sent per rank 2·bytes·(n-1)/n   n a power of two
///   2·floor(log2 n) + 2    and bytes more                  other n
///   order of sums: by rank in each addition
///
/// De Sensi et al., "Bine trees: enhancing collective operations by optimizing communication locality", SC 2025.
Schedule build(const Shape& shape, int) {
  const Butterfly butterfly(shape.ranks, swing_partner);
  return halve_and_double(shape, butterfly, butterfly.contiguous());
}

}  // namespace

const Family algorithm::bine{.name = "bine",
                             .supports = supports_any_of<Collective::all_reduce>,
                             .build = build,
                             .carried_by = carried_except_inline,
                             .items = exchange_items,
                             .classes = Classes::folded};

}  // namespace tutti
