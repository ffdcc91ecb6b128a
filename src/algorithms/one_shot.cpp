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
  const CollectiveFacts& facts = facts_of(shape.collective);
  for (Rank to = 0; to < shape.ranks; ++to) {
    if (!holds(facts.output, to, shape.root)) continue;
    const int input = facts.input_groups == GroupCount::one ? 0 : to;
    const auto copy = [&](Rank from, int output) {
      schedule.copy(from, {Buffer::input, input}, to, {Buffer::output, output});
    };
    if (facts.computes != Computes::nothing)
      reduce_all(shape, schedule, input, to);
    else if (facts.input == Holders::root)
      copy(shape.root, 0);
    else
      for_each_partner(shape, to, [&](Rank from) { copy(from, from); });
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
