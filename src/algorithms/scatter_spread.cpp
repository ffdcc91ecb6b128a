// A broadcast that first scatters the data, then gathers it on all ranks.
#include "algorithms/scatter_spread.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "algorithms/skips.h"
#include "algorithms/spread.h"

namespace tutti {
namespace {

/// v passes half of the chunks of its subtree, those of [v + span, v + 2·span), to the first rank of that half.
Spread scattered(int n) {
  Spread spread(n, /*chunks=*/n);
  const int top = static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))) / 2;
  for (int span = top; span >= 1; span /= 2, spread.next_step())
    for (int v = 0; v + span < n; v += 2 * span)
      for (int chunk = v + span; chunk < std::min(n, v + 2 * span); ++chunk) spread.hop(v, v + span, chunk);
  return spread;
}

}  // namespace

Schedule scatter_then_ring(const Shape& shape) {
  const int n = shape.ranks;
  Spread spread = scattered(n);
  for (int step = 0; step < n - 1; ++step, spread.next_step())
    for (int v = 0; v < n; ++v) spread.hop(v, (v + 1) % n, (v - step + n) % n);
  return spread.schedule(shape);
}

Schedule scatter_then_circulant(const Shape& shape) {
  const int n = shape.ranks;
  Spread spread = scattered(n);
  const std::vector<int> skips = circulant_skips(n);
  for (std::size_t i = skips.size() - 1; i > 0; --i, spread.next_step()) {
    const int skip = skips[i];  // each v has chunks [v, v + skip), cyclically
    for (int v = 0; v < n; ++v)
      for (int u = v; u < v + skips[i - 1] - skip; ++u) spread.hop(v, (v - skip + n) % n, u % n);
  }
  return spread.schedule(shape);
}

}  // namespace tutti
