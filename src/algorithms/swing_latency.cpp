// Partners on alternating sides exchange all their data.
#include "algorithms/algorithm.h"
#include "algorithms/butterfly.h"

namespace tutti {
namespace {

/// Swing, the variant for latency: recursive doubling with the partners of swing, the farthest first (in the paper they
/// are the last): only in this order do all ranks add in the same order.
///
///   steps log2 n, floor(log2 n) + 2 where n is no power of two (fold)   sent per rank bytes·steps
///   order of sums: by the lowest rank in each
///
/// De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth allreduce", NSDI 2024.
Schedule build(const Shape& shape, int) {
  return exchange_all(shape, Butterfly(shape.ranks, swing_partner));
}

}  // namespace

const Family algorithm::swing_latency{.name = "swing_latency",
                                      .supports = supports_any_of<Collective::all_reduce>,
                                      .build = build,
                                      .items = one_item,
                                      .classes = Classes::folded};

}  // namespace tutti
