// From neighbour to neighbour, pipelined in chunks.
#include <numeric>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/spread.h"

namespace tutti {
namespace {

/// Chain: each rank passes a chunk on to its neighbour as soon as it has received it.
///
///   steps n-2 + chunks   sent per rank bytes   any n ≥ 2, any root   order of sums: along the chain, far end first
///
/// With one chunk it is the plain chain; with many chunks all links are busy at once.
Schedule build(const Shape& shape, int chunks) {
  std::vector<int> parents(static_cast<std::size_t>(shape.ranks));
  std::iota(parents.begin(), parents.end(), Tree::none);
  return pipelined(shape, Tree(std::move(parents)), chunks);
}

constexpr int chunks[] = {4, 16, 1};

}  // namespace

const Family algorithm::chain{.name = "chain",
                              .supports = broadcast_or_reduce,
                              .build = build,
                              .carried_by = broadcast_carried_except_inline,
                              .items = one_item,
                              .parameter = "chunks",
                              .values = chunks};

}  // namespace tutti
