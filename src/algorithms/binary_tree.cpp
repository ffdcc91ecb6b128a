// A tree with two children per rank, pipelined in chunks.
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/spread.h"

namespace tutti {
namespace {

/// Binary tree: the root's children are the ranks 1 and 2 after it, and so on; each rank passes a chunk to both
/// children at once.
///
///   steps floor(log2 n) + chunks-1   sent per rank at most 2·bytes, to two others in a step (reduce: bytes, to one)
///   any n ≥ 2, any root   order of sums: by rank in each addition
Schedule build(const Shape& shape, int chunks) {
  std::vector<int> parents{Tree::none};
  for (int v = 1; v < shape.ranks; ++v) parents.push_back((v - 1) / 2);
  const Tree tree(std::move(parents));
  const Pipeline pipeline{.tree = &tree};
  return pipelined(shape, {&pipeline, 1}, chunks);
}

constexpr int chunks[] = {4, 16, 1};

}  // namespace

const Family algorithm::binary_tree{.name = "binary_tree",
                                    .supports = supports_any_of<Collective::broadcast, Collective::reduce>,
                                    .build = build,
                                    .carried_by = only_carried<Collective::broadcast>,
                                    .items = one_item,
                                    .parameter = "chunks",
                                    .values = chunks};

}  // namespace tutti
