// Groups of k ranks at distance 1, k, k², … exchange k-th parts, then, in reverse order, the results.
#include "algorithms/algorithm.h"
#include "algorithms/digits.h"

namespace tutti {
namespace {

/// The chunks that `i` still sums up after it has met the ranks nearer than `distance`: a number of chunks, and the
/// first of them.
struct Window {
  int first;
  int size;
};

Window window(const Digits& digits, int i, int distance) {
  Window kept{.first = 0, .size = digits.active()};
  for (int d = 1; d < distance; d *= digits.radix()) {
    kept.size /= digits.radix();
    kept.first += digits.digit(i, d) * kept.size;
  }
  return kept;
}

/// Halving and doubling of radix k: in each step the vector is divided into k parts, one for each of a group of k
/// ranks; then backwards. It lies between recursive multiplying and two-shot, which it is for k = n.
///
///   steps 2·log_k n, k-1 messages in each   sent per rank 2·bytes·(n-1)/n   n a power of k
///   2·floor(log_k n) + 2                    and up to (k-1)·bytes more      other n: runs of up to k ranks fold
///   order of sums: by rank, k operands in one pass
///
/// Rabenseifner's algorithm as generalized in the code of MPICH, UCC and Gloo (there called bcube); there is no paper.
Schedule build(const Shape& shape, int radix) {
  const Digits digits(shape.ranks, radix);
  Schedule schedule(shape, /*parts=*/digits.active());
  fold_step(schedule, digits, [&](Rank rank, Rank active) {
    for (int chunk = 0; chunk < digits.active(); ++chunk) schedule.reduce(rank, active, chunk);
  });
  int distance = 1;
  for (; distance < digits.active(); distance *= digits.radix(), schedule.next_step())
    for_each_pair(schedule, digits, distance, [&](int i, int to) {
      const auto [first, size] = window(digits, to, distance * digits.radix());
      for (int chunk = first; chunk < first + size; ++chunk)
        schedule.reduce(digits.rank(i), digits.rank(to), chunk, digits.ranks_met(i, distance));
    });
  for (distance /= digits.radix(); distance >= 1; distance /= digits.radix(), schedule.next_step())
    for_each_pair(schedule, digits, distance, [&](int i, int to) {
      const auto [first, size] = window(digits, i, distance * digits.radix());
      for (int chunk = first; chunk < first + size; ++chunk) schedule.copy(digits.rank(i), digits.rank(to), chunk);
    });
  fold_step(schedule, digits, [&](Rank rank, Rank active) {
    for (int chunk = 0; chunk < digits.active(); ++chunk) schedule.copy(active, rank, chunk);
  });
  return schedule;
}

int items(const Shape& shape, int radix) {
  const Digits digits(shape.ranks, radix);
  return digits.active() < shape.ranks ? digits.active() : digits.active() / digits.radix();
}

constexpr int radixes[] = {4, 8, 3};

}  // namespace

const Family algorithm::k_halving_doubling{.name = "k_halving_doubling",
                                           .supports = supports_any_of<Collective::all_reduce>,
                                           .build = build,
                                           .carried_by = carried_except_inline,
                                           .items = items,
                                           .classes = Classes::folded,
                                           .parameter = "radix",
                                           .values = radixes};

}  // namespace tutti
