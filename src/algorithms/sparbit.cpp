// Blocks take their longest hop first, so that few of them travel far.
#include <bit>

#include "algorithms/algorithm.h"
#include "algorithms/visits.h"

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
Schedule build(const Shape& shape, int) {
  const int n = shape.ranks;
  Schedule schedule = with_own_blocks(shape);
  for (int distance = static_cast<int>(std::bit_floor(static_cast<unsigned>(n - 1))); distance >= 1; distance /= 2) {
    for_each_sender_ahead(shape, distance, [&](Rank rank) {
      for (int offset = distance; offset < n; offset += 2 * distance)
        pass_on(schedule, (rank + distance - offset + n) % n, rank, (rank + distance) % n);
    });
    schedule.next_step();
  }
  return schedule;
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
