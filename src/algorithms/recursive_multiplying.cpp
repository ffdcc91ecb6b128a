// Groups of k ranks at distance 1, k, k², … share all they have.
#include <algorithm>

#include "algorithms/algorithm.h"

namespace tutti {
namespace {

/// The largest power of `radix` up to n.
int power_below(int n, int radix) {
  int power = 1;
  while (power <= n / radix) power *= radix;
  return power;
}

bool supports(const Shape& shape, int radix) {
  if (shape.ranks < 2) return false;
  return shape.collective == Collective::all_reduce ||
         (shape.collective == Collective::all_gather && power_below(shape.ranks, radix) == shape.ranks);
}

/// The i-th of the ranks that share a digit's group with `i`, whose digit has the value `distance`.
int fellow(int i, int distance, int radix, int digit) {
  return i / (distance * radix) * (distance * radix) + digit * distance + i % distance;
}

/// Each active rank stands for a run of at most `radix` ranks, of which it is the first.
Schedule all_reduce(const Shape& shape, int radix) {
  const int n = shape.ranks;
  const int active = power_below(n, radix);
  const auto first = [&](int i) { return static_cast<Rank>(static_cast<long long>(i) * n / active); };

  Schedule schedule(shape, /*parts=*/1);
  for (int i = 0; i < active; ++i)
    for (Rank rank = first(i) + 1; rank < first(i + 1); ++rank) schedule.reduce(rank, first(i), 0);
  schedule.next_step();
  for (int distance = 1; distance < active; distance *= radix, schedule.next_step())
    for (int i = 0; i < active; ++i)
      for (int digit = 0; digit < radix; ++digit)
        if (const int to = fellow(i, distance, radix, digit); to != i) schedule.reduce(first(i), first(to), 0);
  for (int i = 0; i < active; ++i)
    for (Rank rank = first(i) + 1; rank < first(i + 1); ++rank) schedule.copy(first(i), rank, 0);
  return schedule;
}

Schedule all_gather(const Shape& shape, int radix) {
  const int n = shape.ranks;
  Schedule schedule(shape, /*parts=*/1);
  for (Rank rank = 0; rank < n; ++rank) schedule.copy(rank, {Buffer::input, 0}, rank, {Buffer::output, rank});
  for (int distance = 1; distance < n; distance *= radix, schedule.next_step())
    for (Rank rank = 0; rank < n; ++rank)
      for (int digit = 0; digit < radix; ++digit) {
        const Rank to = fellow(rank, distance, radix, digit);
        const int begin = rank / distance * distance;
        for (int group = begin; to != rank && group < begin + distance; ++group)
          schedule.copy(rank, group == rank ? Ref{Buffer::input, 0} : Ref{Buffer::output, group}, to,
                        {Buffer::output, group});
      }
  return schedule;
}

/// Recursive multiplying: recursive doubling with groups of k = radix (of n, where that is less) instead of pairs;
/// fewer steps for ranks that can send k-1 messages at a time.
///
///   all-reduce   steps log_k n, floor(log_k n) + 2 where n is no power of k   sent per rank (k-1)·bytes·steps
///   all-gather   steps log_k n   sent per rank bytes·(n-1)/n   n a power of k
///   order of sums: by rank in each addition, k operands in one pass
///
/// Ruefenacht, Bull and Booth, "Generalisation of recursive doubling for AllReduce: Now with simulation", Parallel
/// Computing 2017.
Schedule build(const Shape& shape, int radix) {
  const int k = std::min(radix, shape.ranks);
  return shape.collective == Collective::all_reduce ? all_reduce(shape, k) : all_gather(shape, k);
}

/// An exchanged sum would be overwritten while others read it; gathered blocks are never rewritten.
bool carried_by(Collective collective, Reach reach) {
  return reach != Reach::line && collective == Collective::all_gather;
}

constexpr int radixes[] = {4, 8, 3};

}  // namespace

const Family algorithm::recursive_multiplying{.name = "recursive_multiplying",
                                              .supports = supports,
                                              .build = build,
                                              .carried_by = carried_by,
                                              .parameter = "radix",
                                              .values = radixes};

}  // namespace tutti
