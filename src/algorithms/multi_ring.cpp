// Several rings, each with different neighbours: those of the machine, or some that differ where nothing is known of
// it.
#include <algorithm>
#include <numeric>
#include <span>
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

constexpr int all_known = 0;

/// How many rings of the shape to follow; 0: it has too few.
std::size_t known_rings(const Shape& shape, int rings) {
  const auto wanted = rings == all_known ? shape.rings.size() : static_cast<std::size_t>(rings);
  return wanted <= shape.rings.size() ? wanted : 0;
}

bool supports(const Shape& shape, int rings) {
  if (!algorithm::ring.supports(shape, 0)) return false;
  if (known_rings(shape, rings) > 0) return true;
  return rings != all_known && static_cast<int>(strides(shape.ranks, rings).size()) == rings;
}

/// Multi-ring: an equal share of the data along each of several rings, so that ranks with several links, and hosts with
/// several NICs, fill them all. The rings are the first ones of the shape (0: all of them), which follow the links of
/// the machine. Where it has fewer, their neighbours are 1, … ranks apart: strides without a common divisor with n, so
/// that no link is in two rings.
///
///   all-reduce      steps 2(n-1)   sent per rank and ring 2·bytes/rings·(n-1)/n
///   reduce-scatter,
///   all-gather      steps n-1      sent per rank and ring bytes/rings·(n-1)/n
///   n for which the shape has so many rings, or with so many strides up to n/2   order of sums: ring order
///
/// NCCL has a ring for each of its channels in the same way.
Schedule build(const Shape& shape, int rings) {
  if (const std::size_t known = known_rings(shape, rings); known > 0)
    return along_rings(shape, std::span(shape.rings).first(known));
  std::vector<RingOrder> orders;
  for (const int stride : strides(shape.ranks, rings)) orders.push_back(ring_order(shape.ranks, stride));
  return along_rings(shape, orders);
}

/// Rings of a machine may share a link: as many as do have a block each in its messages.
int items(const Shape& shape, int rings) {
  const std::size_t known = known_rings(shape, rings), n = static_cast<std::size_t>(shape.ranks);
  std::vector<std::vector<Rank>> next_of(n);  // by rank: its neighbour in each ring
  for (const RingOrder& ring : std::span(shape.rings).first(known))
    for (std::size_t i = 0; i < n; ++i) next_of[static_cast<std::size_t>(ring[i])].push_back(ring[(i + 1) % n]);
  std::ptrdiff_t most = 1;
  for (const std::vector<Rank>& next : next_of)
    for (const Rank rank : next) most = std::max(most, std::ranges::count(next, rank));
  return static_cast<int>(most);
}

constexpr int rings[] = {all_known, 2, 4};

}  // namespace

const Family algorithm::multi_ring{.name = "multi_ring",
                                   .supports = supports,
                                   .build = build,
                                   .carried_by = carried_except<Collective::reduce_scatter>,
                                   .items = items,
                                   .classes = Classes::rings,
                                   .parameter = "rings",
                                   .values = rings};

}  // namespace tutti
