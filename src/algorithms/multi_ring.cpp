// Several rings, each with different neighbours.
#include <numeric>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/rings.h"

namespace tutti {
namespace {

/// The smallest strides that visit all of n ranks. No two of them are opposite, which would use the same links.
std::vector<int> strides(int n, int count) {
  std::vector<int> found;
  for (int stride = 1; 2 * stride <= n && static_cast<int>(found.size()) < count; ++stride)
    if (std::gcd(stride, n) == 1) found.push_back(stride);
  return found;
}

bool supports(const Shape& shape, int rings) {
  return (shape.collective == Collective::all_reduce || shape.collective == Collective::all_gather ||
          shape.collective == Collective::reduce_scatter) &&
         static_cast<int>(strides(shape.ranks, rings).size()) == rings;
}

/// Multi-ring: an equal share of the data along each of several rings, whose neighbours are 1, … ranks apart: strides
/// without a common divisor with n. No link is in two rings, so ranks with several links fill them all.
///
///   all-reduce      steps 2(n-1)   sent per rank and ring 2·bytes/rings·(n-1)/n
///   reduce-scatter,
///   all-gather      steps n-1      sent per rank and ring bytes/rings·(n-1)/n
///   n that has so many strides up to n/2   order of sums: ring order
///
/// NCCL places rings on the links of a machine in the same way; here the machine must look alike from every rank.
Schedule build(const Shape& shape, int rings) {
  std::vector<RingOrder> orders;
  for (const int stride : strides(shape.ranks, rings)) orders.push_back(ring_order(shape.ranks, stride));
  return along_rings(shape, orders);
}

/// A reduce-scatter's sums are in scratch when the neighbour reads them.
bool carried_by(Collective collective, Access access) {
  return access != Access::in_line && collective != Collective::reduce_scatter;
}

constexpr int rings[] = {2, 4};

}  // namespace

const Family algorithm::multi_ring{.name = "multi_ring",
                                   .supports = supports,
                                   .build = build,
                                   .carried_by = carried_by,
                                   .items = one_item,
                                   .classes = Classes::one,
                                   .parameter = "rings",
                                   .values = rings};

}  // namespace tutti
