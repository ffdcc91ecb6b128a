// Every rank processes its part of all data, then passes the result to the ranks that need it.
#include "algorithms/algorithm.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

/// Two-shot: part c belongs to rank c. It gets that part of every input (of the root's), then stores the result on
/// every rank (on the root).
///
///   steps 2   sent per rank 2·bytes·(n-1)/n (all-reduce)   any n   order of sums: rank order, in one pass
///
/// With mapped memory the two steps fuse into one pass: n sources, n destinations. A broadcast in this way is van de
/// Geijn's scatter and all-gather; rank c stores to the root too, so that all ranks move the same amount.
Schedule build(const Shape& shape, int) {
  Schedule schedule(shape, /*parts=*/shape.ranks);
  const auto owned = [&](Rank rank) {  // where a rank keeps the result of its part
    const bool has_output = shape.collective != Collective::reduce || rank == shape.root;
    return Ref{has_output ? Buffer::output : Buffer::scratch, rank};
  };
  for (Rank owner = 0; owner < shape.ranks; ++owner) {
    const Ref part{Buffer::input, owner};
    if (shape.collective == Collective::broadcast) {
      schedule.copy(shape.root, part, owner, owned(owner));
    } else {
      for_each_partner(shape, owner, [&](Rank from) { schedule.reduce(from, part, owner, owned(owner), from); });
    }
  }
  schedule.next_step();
  for (Rank owner = 0; owner < shape.ranks; ++owner)
    for_each_partner(shape, owner, [&](Rank to) {
      const bool wants = shape.collective != Collective::reduce || to == shape.root;
      if (to != owner && wants) schedule.copy(owner, owned(owner), to, {Buffer::output, owner});
    });
  return schedule;
}

/// A reduction leaves parts in scratch, which its owner must store to the other ranks.
bool carried_by(Collective collective, Access access) {
  return access == Access::mapped || (access == Access::cma && collective != Collective::reduce);
}

}  // namespace

const Family algorithm::two_shot{
    .name = "two_shot",
    .supports = supports_any_of<Collective::all_reduce, Collective::reduce, Collective::broadcast>,
    .build = build,
    .carried_by = carried_by,
    .items = one_item,
    .classes = Classes::folded};

}  // namespace tutti
