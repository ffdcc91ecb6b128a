// Every rank sends all that the others need at once.
#include "algorithms/algorithm.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

bool supports(const Shape& shape, int) {
  return shape.ranks > 1;
}

/// Reduces all ranks' block `block` in rank order, so that every rank that reduces it gets the same bits. Of a prefix
/// reduction, those of the lower ranks.
void reduce_all(const Shape& shape, Schedule& schedule, int block, Rank to) {
  const int combined = ranks_combined(shape.collective, shape.ranks, to);
  for_each_partner(shape, to, [&](Rank from) {
    if (from < combined)
      schedule.reduce(from, {Buffer::input, block}, to, {Buffer::output, 0}, from, shape.inputs_of(from));
  });
}

/// One-shot: every rank gets what it needs directly from the inputs, in a single step.
///
///   steps 1   sent per rank (n-1)·input (scan: that of rank 0)   any n   order of sums: rank order, in one pass
///
/// It has the fewest waits possible. An all-reduce sends every input n-1 times, a scan half as often on average, so it
/// is for small calls.
Schedule build(const Shape& shape, int) {
  Schedule schedule(shape, /*parts=*/1);
  const auto copy = [&schedule](Rank from, int input, Rank to, int output) {
    schedule.copy(from, {Buffer::input, input}, to, {Buffer::output, output});
  };
  for (Rank to = 0; to < shape.ranks; ++to) {
    switch (shape.collective) {
      case Collective::all_reduce:
      case Collective::scan:
      case Collective::ex_scan: reduce_all(shape, schedule, 0, to); continue;
      case Collective::reduce_scatter: reduce_all(shape, schedule, to, to); continue;
      case Collective::reduce:
        if (to == shape.root) reduce_all(shape, schedule, 0, to);
        continue;
      case Collective::broadcast: copy(shape.root, 0, to, 0); continue;
      case Collective::scatter: copy(shape.root, to, to, 0); continue;
      case Collective::gather:
        if (to != shape.root) continue;
        break;
      case Collective::all_gather:
      case Collective::all_to_all:
      case Collective::barrier: break;
    }
    for_each_partner(shape, to,
                     [&](Rank from) { copy(from, shape.collective == Collective::all_to_all ? to : 0, to, from); });
  }
  return schedule;
}

/// In place, the inputs of an all-reduce or a scan would be overwritten while other ranks read them.
bool carried_by(Collective collective, Access access) {
  return access == Access::in_line || (collective != Collective::all_reduce && collective != Collective::scan);
}

}  // namespace

const Family algorithm::one_shot{.name = "one_shot",
                                 .supports = supports,
                                 .build = build,
                                 .carried_by = carried_by,
                                 .items = one_item,
                                 .direct = always_direct,
                                 .classes = Classes::folded};

}  // namespace tutti
