// A barrier in logarithmic steps.
#include <algorithm>

#include "algorithms/algorithm.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

bool supports(const Shape& shape, int) {
  return shape.ranks > 1 && shape.collective == Collective::barrier;
}

/// Dissemination: in step k every rank tells the rank 2^k ahead which ranks it knows to have entered: itself and those
/// less than 2^k behind it.
///
///   steps ceil(log2 n)   one empty message per rank and step   any n ≥ 2
///
/// Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988.
Schedule build(const Shape& shape, int) {
  const int n = shape.ranks;
  Schedule schedule(shape, /*parts=*/1);
  for_each_rank(shape, [&](Rank rank) { schedule.copy(rank, {Buffer::input, 0}, rank, {Buffer::output, rank}); });
  for (int known = 1; known < n; known *= 2, schedule.next_step())
    for_each_sender_ahead(shape, known, [&](Rank rank) {
      for (int behind = 0; behind < std::min(known, n - known); ++behind) {
        const int token = (rank - behind + n) % n;
        schedule.copy(rank, behind == 0 ? Ref{Buffer::input, 0} : Ref{Buffer::output, token}, (rank + known) % n,
                      {Buffer::output, token});
      }
    });
  return schedule;
}

int items(const Shape& shape, int) {
  int most = 0;
  for (int known = 1; known < shape.ranks; known *= 2) most = std::max(most, std::min(known, shape.ranks - known));
  return most;
}

}  // namespace

const Family algorithm::dissemination{.name = "dissemination",
                                      .supports = supports,
                                      .build = build,
                                      .carried_by = carried_except_inline,
                                      .items = items,
                                      .classes = Classes::one};

}  // namespace tutti
