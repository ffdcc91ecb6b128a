// Partners at distance 1, 2, 4, … exchange all their data, or pass it on in one direction.
#include <algorithm>
#include <bit>
#include <cassert>

#include "algorithms/algorithm.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

bool is_power_of_two(int n) {
  return std::has_single_bit(static_cast<unsigned>(n));
}

bool supports(const Shape& shape, int) {
  if (shape.ranks < 2) return false;
  return shape.collective == Collective::all_reduce || prefixes(shape.collective) ||
         (shape.collective == Collective::all_gather && is_power_of_two(shape.ranks));
}

/// Ranks beyond a power of two pass their value to a neighbour first (fold), and receive the result last.
Schedule all_reduce(const Shape& shape) {
  const int n = shape.ranks;
  const int active = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
  const int folded = n - active;
  const auto rank_of = [folded](int i) { return i < folded ? 2 * i + 1 : i + folded; };  // the i-th active rank
  const auto summed = [folded](int i, int distance) {  // of how many ranks' inputs it has the sum
    return distance + std::clamp(folded - i / distance * distance, 0, distance);
  };

  Schedule schedule(shape, /*parts=*/1);
  for (int i = 0; i < folded; ++i) schedule.reduce(2 * i, 2 * i + 1, 0);
  if (folded > 0) schedule.next_step();
  for (int distance = 1; distance < active; distance *= 2, schedule.next_step())
    for (int i = 0; i < active; ++i) schedule.reduce(rank_of(i), rank_of(i ^ distance), 0, summed(i, distance));
  for (int i = 0; i < folded; ++i) schedule.copy(2 * i + 1, 2 * i, 0);
  if (folded > 0) schedule.next_step();
  return schedule;
}

Schedule all_gather(const Shape& shape) {
  Schedule schedule = with_own_blocks(shape);
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

/// Calls use(from, to) for all pairs of ranks at this distance.
template <class Use>
void for_each_pair_ahead(const Shape& shape, int distance, Use&& use) {
  for_each_sender(
      shape, [=](Rank to) { return to - distance; },
      [&](Rank from) {
        if (from + distance < shape.ranks) use(from, from + distance);
      });
}

/// `to` combines what both ranks hold there, the sender's first.
void combine(Schedule& schedule, Rank from, Rank to, Buffer held) {
  schedule.reduce(from, {held, 0}, to, {Buffer::output, 0}, from);
  schedule.reduce(to, {held, 0}, to, {Buffer::output, 0}, to);
}

/// A rank's result so far is of itself and the ranks less than `distance` below it.
Schedule scan(const Shape& shape) {
  Schedule schedule(shape, /*parts=*/1);
  schedule.copy(0, {Buffer::input, 0}, 0, {Buffer::output, 0});
  for (int distance = 1; distance < shape.ranks; distance *= 2, schedule.next_step())
    for_each_pair_ahead(shape, distance, [&](Rank from, Rank to) {
      combine(schedule, from, to, distance == 1 ? Buffer::input : Buffer::output);
    });
  return schedule;
}

/// A rank's result so far is of the `covered` ranks below it: of one, then of three, as the second step gets a sender's
/// input beside its result, then twice as many in each step. Rank 0 has none.
Schedule ex_scan(const Shape& shape) {
  const int needed = shape.ranks - 1;
  Schedule schedule(shape, /*parts=*/1);
  for_each_pair_ahead(shape, 1, [&](Rank from, Rank to) {
    schedule.copy(from, {Buffer::input, 0}, to, {Buffer::output, 0});
  });
  schedule.next_step();
  if (needed == 1) return schedule;
  for_each_pair_ahead(shape, 2, [&](Rank from, Rank to) {
    if (from > 0) schedule.reduce(from, {Buffer::output, 0}, to, {Buffer::output, 0}, from - 1);
    schedule.reduce(from, {Buffer::input, 0}, to, {Buffer::output, 0}, from);
    schedule.reduce(to, {Buffer::output, 0}, to, {Buffer::output, 0}, to);
  });
  schedule.next_step();
  for (int covered = 3; covered < needed; covered *= 2, schedule.next_step())
    for_each_pair_ahead(shape, covered, [&](Rank from, Rank to) {
      if (from > 0) combine(schedule, from, to, Buffer::output);
    });
  return schedule;
}

/// Recursive doubling: after k steps a rank has the data of 2^k ranks.
///
///   all-reduce   steps log2(n), floor(log2 n) + 2 where n is no power of two   sent per rank bytes·steps
///   all-gather   steps log2(n)   sent per rank bytes·(n-1)/n   n a power of two
///   scan         steps ceil(log2 n)   sent per rank at most bytes·steps   order of sums: rank order, in pairs
///   ex_scan      steps ceil(log2(4/3·(n-1))), one of 2 ranks   sent per rank at most bytes·(steps + 1)   as scan
///
/// Both sides of an exchange add the lower rank's value first, so all ranks get the same bits.
/// Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005; scan:
/// Hillis and Steele, "Data parallel algorithms", CACM 1986, and Sanders and Träff, "Parallel prefix (scan) algorithms
/// for MPI", EuroPVM/MPI 2006; ex_scan: Träff, "Communication round and computation efficient exclusive prefix-sums
/// algorithms (for MPI_Exscan)", 2025.
Schedule build(const Shape& shape, int) {
  if (shape.collective == Collective::scan) return scan(shape);
  if (shape.collective == Collective::ex_scan) return ex_scan(shape);
  if (shape.collective == Collective::all_gather) return all_gather(shape);
  assert(shape.collective == Collective::all_reduce);
  return all_reduce(shape);
}

int items(const Shape& shape, int) {
  if (shape.collective == Collective::all_gather) return shape.ranks / 2;
  return shape.collective == Collective::ex_scan && shape.ranks > 3 ? 2 : 1;
}

}  // namespace

/// A sum that is passed on would be overwritten while the partner reads it; gathered blocks are never rewritten.
const Family algorithm::recursive_doubling{.name = "recursive_doubling",
                                           .supports = supports,
                                           .build = build,
                                           .carried_by = only_carried<Collective::all_gather>,
                                           .items = items,
                                           .classes = Classes::folded};

}  // namespace tutti
