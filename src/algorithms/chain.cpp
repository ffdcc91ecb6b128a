// From neighbour to neighbour, pipelined in chunks.
#include <numeric>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/spread.h"

namespace tutti {
namespace {

bool supports(const Shape& shape, int) {
  return shape.ranks > 1 && (shape.collective == Collective::broadcast || shape.collective == Collective::reduce);
}

/// Chain: each rank passes a chunk on to its neighbour as soon as it has received it.
///
///   steps n-2 + chunks   sent per rank bytes   any n ≥ 2, any root   order of sums: along the chain, far end first
///
/// With one chunk it is the plain chain; with many chunks all links are busy at once.
Schedule build(const Shape& shape, int chunks) {
  std::vector<int> parents(static_cast<std::size_t>(shape.ranks));
  std::iota(parents.begin(), parents.end(), Tree::none);
  const Tree chain(std::move(parents));
  Spread spread(shape.ranks, chunks);
  for (int step = 0; step < chain.height() + chunks - 1; ++step, spread.next_step()) spread.pipeline(chain, step);
  return spread.schedule(shape);
}

/// A reduce's sums are in scratch when the neighbour reads them.
bool carried_by(Collective collective, Access access) {
  return access != Access::in_line && collective == Collective::broadcast;
}

constexpr int chunks[] = {4, 16, 1};

}  // namespace

const Family algorithm::chain{.name = "chain",
                              .supports = supports,
                              .build = build,
                              .carried_by = carried_by,
                              .parameter = "chunks",
                              .values = chunks};

}  // namespace tutti
