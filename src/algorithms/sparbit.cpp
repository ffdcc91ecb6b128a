// Blocks take their longest hop first, so that few of them travel far.
#include "algorithms/algorithm.h"

namespace tutti {
namespace {

/// Sparbit: Bruck's steps from the farthest to the nearest. Distances are powers of two from the largest below n down
/// to 1; the rank `distance` back passes on every block that it has by then. A block from the rank `offset` back has
/// made the hops that are the bits of `offset`, the lowest bit last.
///
///   steps ceil(log2 n)   sent per rank bytes·(n-1)/n, half of it to the next rank   any n ≥ 2
///
/// Loch and Koslovski, "Sparbit: a new logarithmic-cost and data locality-aware MPI Allgather algorithm", SBAC-PAD
/// 2021.
///
/// That is PAT with messages of any number of blocks.
Schedule build(const Shape& shape, int) {
  return algorithm::pat.build(shape, shape.ranks);
}

/// The last step has the largest messages.
int items(const Shape& shape, int) {
  return shape.ranks / 2;
}

}  // namespace

const Family algorithm::sparbit{.name = "sparbit",
                                .supports = supports_any_of<Collective::all_gather>,
                                .build = build,
                                .carried_by = carried_except_inline,
                                .items = items,
                                .classes = Classes::one};

}  // namespace tutti
