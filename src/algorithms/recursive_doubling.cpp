// Partners at distance 1, 2, 4, … exchange all their data.
#include <bit>

#include "algorithms/algorithm.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

bool is_power_of_two(int n) {
  return std::has_single_bit(static_cast<unsigned>(n));
}

bool supports(const Shape& shape, int) {
  if (shape.ranks < 2) return false;
  return shape.collective == Collective::all_reduce ||
         (shape.collective == Collective::all_gather && is_power_of_two(shape.ranks));
}

/// Ranks beyond a power of two pass their value to a neighbour first (fold), and receive the result last.
Schedule all_reduce(const Shape& shape) {
  const int n = shape.ranks;
  const int active = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
  const int folded = n - active;
  const auto rank_of = [folded](int i) { return i < folded ? 2 * i + 1 : i + folded; };  // the i-th active rank

  Schedule schedule(shape, /*parts=*/1);
  for (int i = 0; i < folded; ++i) schedule.reduce(2 * i, 2 * i + 1, 0);
  if (folded > 0) schedule.next_step();
  for (int distance = 1; distance < active; distance *= 2, schedule.next_step())
    for (int i = 0; i < active; ++i) schedule.reduce(rank_of(i), rank_of(i ^ distance), 0);
  for (int i = 0; i < folded; ++i) schedule.copy(2 * i + 1, 2 * i, 0);
  if (folded > 0) schedule.next_step();
  return schedule;
}

Schedule all_gather(const Shape& shape) {
  Schedule schedule(shape, /*parts=*/1);
  for_each_rank(shape, [&](Rank rank) { schedule.copy(rank, {Buffer::input, 0}, rank, {Buffer::output, rank}); });
  for (int distance = 1; distance < shape.ranks; distance *= 2, schedule.next_step())
    for_each_sender(
        shape, [=](Rank rank) { return rank ^ distance; },
        [&](Rank rank) {
          const int first = rank / distance * distance;
          for (int group = first; group < first + distance; ++group)
            schedule.copy(rank, distance == 1 ? Ref{Buffer::input, 0} : Ref{Buffer::output, group}, rank ^ distance,
                          {Buffer::output, group});
        });
  return schedule;
}

/// Recursive doubling: after k exchanges a rank has the data of 2^k ranks.
///
///   all-reduce   steps log2(n), floor(log2 n) + 2 where n is no power of two   sent per rank bytes·steps
///   all-gather   steps log2(n)   sent per rank bytes·(n-1)/n   n a power of two
///
/// Both sides of an exchange add the lower rank's value first, so all ranks get the same bits.
/// Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005.
Schedule build(const Shape& shape, int) {
  return shape.collective == Collective::all_reduce ? all_reduce(shape) : all_gather(shape);
}

/// An exchanged sum would be overwritten while the partner reads it; gathered blocks are never rewritten.
bool carried_by(Collective collective, Access access) {
  return access != Access::in_line && collective == Collective::all_gather;
}

int items(const Shape& shape, int) {
  return shape.collective == Collective::all_gather ? shape.ranks / 2 : 1;
}

}  // namespace

const Family algorithm::recursive_doubling{.name = "recursive_doubling",
                                           .supports = supports,
                                           .build = build,
                                           .carried_by = carried_by,
                                           .items = items,
                                           .classes = Classes::folded};

}  // namespace tutti
