// Partners on alternating sides exchange halves.
#include <bit>
#include <numeric>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/butterfly.h"

namespace tutti {
namespace {

bool supports(const Shape& shape, int) {
  if (shape.ranks < 2) return false;
  return shape.collective == Collective::all_reduce ||
         ((shape.collective == Collective::reduce_scatter || shape.collective == Collective::all_gather) &&
          std::has_single_bit(static_cast<unsigned>(shape.ranks)));
}

/// Swing, the variant for bandwidth: recursive halving and doubling, but the partner of step s is (1 - (-2)^(s+1)) / 3
/// away: 1, -1, 3, -5, … On a ring or torus this is in the end a third nearer than 2^s, so fewer messages share a link.
/// The sums of block r end at rank r.
///
///   all-reduce                    steps 2·log2 n   sent per rank 2·bytes·(n-1)/n   other n: fold, as halving_doubling
///   reduce-scatter, all-gather    steps log2 n     sent per rank bytes·(n-1)/n     n a power of two
///   order of sums: by rank in each addition
///
/// De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth allreduce", NSDI 2024.
Schedule build(const Shape& shape, int) {
  const Butterfly butterfly(shape.ranks, swing_partner);
  if (shape.collective == Collective::reduce_scatter) return halve(shape, butterfly);
  if (shape.collective == Collective::all_gather) return double_up(shape, butterfly);
  std::vector<int> own(static_cast<std::size_t>(butterfly.size()));
  std::iota(own.begin(), own.end(), 0);
  return halve_and_double(shape, butterfly, own);
}

}  // namespace

const Family algorithm::swing{.name = "swing",
                              .supports = supports,
                              .build = build,
                              .carried_by = carried_except<Collective::reduce_scatter>,
                              .items = exchange_items,
                              .classes = Classes::folded};

}  // namespace tutti
