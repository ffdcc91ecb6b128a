// A barrier in fewer steps, with more messages in each.
#include <algorithm>

#include "algorithms/algorithm.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

/// k-dissemination: in step i every rank tells the ranks k^i, 2·k^i, …, (k-1)·k^i ahead which ranks it knows to have
/// entered: itself and those less than k^i behind it.
///
///   steps ceil(log_k n)   at most k-1 empty messages per rank and step   any n ≥ 2
///
/// Hoefler, Mehlan, Mietke and Rehm, "Fast barrier synchronization for InfiniBand", IPDPS 2006.
Schedule build(const Shape& shape, int radix) {
  const int n = shape.ranks;
  Schedule schedule = with_own_blocks(shape);
  for (int known = 1; known < n; known *= radix, schedule.next_step())
    for (int ahead = known; ahead < std::min(n, radix * known); ahead += known)
      for_each_sender_ahead(shape, ahead, [&](Rank rank) {
        for (int behind = 0; behind < std::min(known, n - ahead); ++behind)
          pass_on(schedule, (rank - behind + n) % n, rank, (rank + ahead) % n);
      });
  return schedule;
}

int items(const Shape& shape, int radix) {
  int most = 0;
  for (int known = 1; known < shape.ranks; known *= radix) most = std::max(most, std::min(known, shape.ranks - known));
  return most;
}

constexpr int radices[] = {4, 3, 8};

}  // namespace

const Family algorithm::k_dissemination{.name = "k_dissemination",
                                        .supports = supports_any_of<Collective::barrier>,
                                        .build = build,
                                        .carried_by = carried_except_inline,
                                        .items = items,
                                        .classes = Classes::one,
                                        .parameter = "radix",
                                        .values = radices};

}  // namespace tutti
