// All-gather in which a rank's data grows by a factor of k in each step, for any number of ranks.
#include <algorithm>

#include "algorithms/algorithm.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

/// Bruck: a rank that has its own block and the `have` - 1 blocks after it, cyclically, sends them to the ranks `have`,
/// 2·`have`, … before it.
///
///   steps ceil(log_k n), k-1 messages in each   sent per rank bytes·(n-1)/n   any n ≥ 2
///
/// Blocks are stored at their final place at once, so nothing is rotated at the end.
/// Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
/// message-passing systems", IEEE TPDS 1997.
Schedule build(const Shape& shape, int radix) {
  return growing(shape, radix, /*ahead=*/-1);
}

constexpr int radixes[] = {2, 4, 8};

}  // namespace

Schedule growing(const Shape& shape, int radix, int ahead) {
  const int n = shape.ranks;
  const auto away = [&](Rank rank, int distance) { return (rank + ahead * distance + n) % n; };
  Schedule schedule = with_own_blocks(shape);
  for (int have = 1; have < n; have *= radix, schedule.next_step())
    for (int distance = have; distance < std::min(have * radix, n); distance += have)
      for_each_sender_ahead(shape, away(0, distance), [&](Rank rank) {
        for (int i = 0; i < std::min(have, n - distance); ++i)
          pass_on(schedule, away(rank, -i), rank, away(rank, distance));
      });
  return schedule;
}

int items_of_growing(const Shape& shape, int radix) {
  int most = 0;
  for (int have = 1; have < shape.ranks; have *= radix) most = std::max(most, std::min(have, shape.ranks - have));
  return most;
}

const Family algorithm::bruck{.name = "bruck",
                              .supports = supports_any_of<Collective::all_gather>,
                              .build = build,
                              .carried_by = carried_except_inline,
                              .items = items_of_growing,
                              .classes = Classes::one,
                              .parameter = "radix",
                              .values = radixes};

}  // namespace tutti
