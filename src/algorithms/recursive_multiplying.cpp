// Groups of k ranks at distance 1, k, k², … share all their data.
#include "algorithms/algorithm.h"
#include "algorithms/digits.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

bool supports(const Shape& shape, int radix) {
  if (shape.ranks < 2) return false;
  return shape.collective == Collective::all_reduce ||
         (shape.collective == Collective::all_gather && shape.ranks >= radix &&
          Digits(shape.ranks, radix).active() == shape.ranks);
}

Schedule all_reduce(const Shape& shape, const Digits& digits) {
  Schedule schedule(shape, /*parts=*/1);
  fold_step(schedule, digits, [&](Rank rank, Rank active) { schedule.reduce(rank, active, 0); });
  for (int distance = 1; distance < digits.active(); distance *= digits.radix(), schedule.next_step())
    for_each_pair(schedule, digits, distance, [&](int i, int to) {
      schedule.reduce(digits.rank(i), digits.rank(to), 0, digits.ranks_met(i, distance));
    });
  fold_step(schedule, digits, [&](Rank rank, Rank active) { schedule.copy(active, rank, 0); });
  return schedule;
}

Schedule all_gather(const Shape& shape, const Digits& digits) {
  Schedule schedule = with_own_blocks(shape);
  for (int distance = 1; distance < shape.ranks; distance *= digits.radix(), schedule.next_step())
    for_each_pair(schedule, digits, distance, [&](Rank rank, Rank to) {  // all are active
      const int begin = rank / distance * distance;
      for (int group = begin; group < begin + distance; ++group) pass_on(schedule, group, rank, to);
    });
  return schedule;
}

/// Recursive multiplying: recursive doubling with groups of k = radix (n, if that is less) instead of pairs; fewer
/// steps for ranks that can send k-1 messages at a time.
///
///   all-reduce   steps log_k n, floor(log_k n) + 2 where n is no power of k   sent per rank (k-1)·bytes·steps
///   all-gather   steps log_k n   sent per rank bytes·(n-1)/n   n a power of k
///   order of sums: by rank in each addition, k operands in one pass
///
/// Ruefenacht, Bull and Booth, "Generalisation of recursive doubling for AllReduce: Now with simulation", Parallel
/// Computing 2017.
Schedule build(const Shape& shape, int radix) {
  const Digits digits(shape.ranks, radix);
  return shape.collective == Collective::all_reduce ? all_reduce(shape, digits) : all_gather(shape, digits);
}

/// The last step of an all-gather has the largest messages.
int items(const Shape& shape, int radix) {
  return shape.collective == Collective::all_reduce ? 1 : shape.ranks / std::min(radix, shape.ranks);
}

constexpr int radixes[] = {4, 8, 3};

}  // namespace

/// An exchanged sum would be overwritten while other ranks read it; gathered blocks are never rewritten.
const Family algorithm::recursive_multiplying{.name = "recursive_multiplying",
                                              .supports = supports,
                                              .build = build,
                                              .carried_by = only_carried<Collective::all_gather>,
                                              .items = items,
                                              .classes = Classes::folded,
                                              .parameter = "radix",
                                              .values = radixes};

}  // namespace tutti
