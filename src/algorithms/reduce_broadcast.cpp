// Up a tree, then down again.
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/digits.h"

namespace tutti {
namespace {

/// Reduce and broadcast: both along the k-nomial tree of rank 0, in which each rank that has the data passes it to k-1
/// others in each step.
///
///   steps 2·ceil(log_k n)   sent per rank at most (k-1)·bytes·ceil(log_k n), by all together (n-1)·bytes each way
///   any n ≥ 2   order of sums: by rank, k operands in one pass
///
/// It has the fewest messages possible, and only one order of additions: for tiny calls of many ranks, or as a
/// reference.
/// Wilkins et al., "Generalized collective algorithms for the exascale era", CLUSTER 2023.
Schedule build(const Shape& shape, int radix) {
  const int n = shape.ranks;
  std::vector<int> sizes;  // of subtrees, smallest first
  for (int size = 1; size < n; size *= radix) sizes.push_back(size);

  Schedule schedule(shape, /*parts=*/1);
  for (auto size = sizes.begin(); size != sizes.end(); ++size, schedule.next_step())
    for_each_branch(n, radix, *size,
                    [&](Rank parent, Rank child, Rank end) { schedule.reduce(child, parent, 0, end - child); });
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size, schedule.next_step())
    for_each_branch(n, radix, *size, [&](Rank parent, Rank child, Rank) { schedule.copy(parent, child, 0); });
  return schedule;
}

constexpr int radixes[] = {2, 4, 8};

}  // namespace

const Family algorithm::reduce_broadcast{.name = "reduce_broadcast",
                                         .supports = supports_any_of<Collective::all_reduce>,
                                         .build = build,
                                         .carried_by = carried_except_inline,
                                         .items = one_item,
                                         .parameter = "radix",
                                         .values = radixes};

}  // namespace tutti
