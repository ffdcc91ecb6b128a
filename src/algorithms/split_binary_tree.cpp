// Half of the data down each side of a binary tree, then an exchange across.
#include <bit>

#include "algorithms/algorithm.h"
#include "algorithms/spread.h"

namespace tutti {
namespace {

/// Split binary tree: even chunks go down one side of the tree, odd chunks down the other; then each rank exchanges
/// halves with a rank of the other side. A rank without a partner there gets that half from the root.
///
///   steps floor(log2 n) + chunks/2   sent per rank at most 3/2·bytes, to two others in a step (reduce: bytes, to one)
///   any n ≥ 2, any root   order of sums: by rank in each addition
///
/// Counted from the root, odd ranks are one side and even ranks the other; in each side the i-th rank has children 2i+1
/// and 2i+2.
/// Pješivac-Grbović et al., "Performance analysis of MPI collective operations", Cluster Computing 2007.
Schedule build(const Shape& shape, int chunks) {
  const int n = shape.ranks;
  const auto levels = [](int nodes) { return static_cast<int>(std::bit_width(static_cast<unsigned>(nodes))); };
  Spread spread = Spread::of_new_chunks(shape, chunks);
  for (int step = 0; step < levels(n / 2) + chunks / 2 - 1; ++step, spread.next_step())
    for (int v = 1; v < n; ++v) {
      const int side = (v - 1) % 2, i = (v - 1) / 2;
      const int above = i == 0 ? 0 : 1 + 2 * ((i - 1) / 2) + side;
      const int chunk = side + 2 * (step + 1 - levels(i + 1));
      if (chunk >= side && chunk < chunks) spread.hop(above, v, chunk);
    }
  for (int v = 1; v < n; ++v) {
    const int side = (v - 1) % 2, other = side == 0 ? v + 1 : v - 1;
    for (int chunk = 1 - side; chunk < chunks; chunk += 2) spread.hop(other < n ? other : 0, v, chunk);
  }
  return spread.schedule(shape);
}

/// The last message has one half of the data.
int items(const Shape&, int chunks) {
  return chunks / 2;
}

constexpr int chunks[] = {8, 2, 16};

}  // namespace

const Family algorithm::split_binary_tree{.name = "split_binary_tree",
                                          .supports = supports_any_of<Collective::broadcast, Collective::reduce>,
                                          .build = build,
                                          .carried_by = only_carried<Collective::broadcast>,
                                          .items = items,
                                          .parameter = "chunks",
                                          .values = chunks};

}  // namespace tutti
