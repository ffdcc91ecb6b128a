// The common part of algorithms whose ranks exchange with one partner after another, in log2 n steps.
#pragma once

#include <bit>
#include <vector>

#include "plan/schedule.h"

namespace tutti {

/// The partners in each step. The number of participants is a power of two; after all steps each has met all others,
/// directly or through others. Ranks beyond a power of two are *folded*: an active neighbour takes part on their
/// behalf.
class Butterfly {
 public:
  /// `partner_of(i, step, size)`: the partner of participant `i` in `step`, counted from 0; the partner's partner is
  /// `i`.
  Butterfly(int ranks, int (*partner_of)(int i, int step, int size));

  static int size_for(int ranks) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks))); }
  int size() const { return size_; }    ///< participants
  int steps() const { return steps_; }  ///< log2 of size
  int folded() const { return ranks_ - size_; }
  int partner(int i, int step) const { return partner_of_(i, step, size_); }

  Rank rank(int i) const { return i < folded() ? 2 * i + 1 : i + folded(); }
  /// That `rank` is, or that folds it.
  int participant(Rank rank) const { return rank < 2 * folded() ? rank / 2 : rank - folded(); }
  bool folds(int i) const { return i < folded(); }
  Rank guest(int i) const { return 2 * i; }  ///< the rank that `i` folds
  std::vector<Rank> members(int i) const;    ///< the ranks on whose behalf `i` takes part, in order

  /// The participants that `i` meets in steps [step, steps), directly or through others, including itself; in ascending
  /// order. When halving, it still has their blocks at the beginning of `step`.
  std::vector<int> ahead(int i, int step) const;
  int first_ahead(int i, int step) const;  ///< the lowest of them
  int ranks_ahead(int i, int step) const;  ///< how many ranks they stand for
  /// How many ranks those stand for that `i` has met before `step`, directly or through others, including itself.
  int ranks_behind(int i, int step) const;

  /// A numbering of participants in which every ahead(i, step) is contiguous.
  std::vector<int> contiguous() const;

 private:
  void number(std::vector<int>& numbers, int i, int step, int first) const;

  int ranks_;
  int size_;
  int steps_;
  int (*partner_of_)(int i, int step, int size);
};

/// The partner of `i` in `step`, of `size` in a cycle: 1, 1, 3, 5, 11, … away, on alternating sides, so that none is
/// farther away than necessary: even ones alternate between the sides, odd ones take the opposite side. For any even
/// `size`; the function is its own inverse.
int swing_partner(int i, int step, int size);

/// All-reduce: partners exchange all their data, those of the last step first. Then any two ranks hold sums of the same
/// ranks or of disjoint ranks, and all end with the same bits; in the order of the steps, sums could overlap. In an
/// addition, the sum with the lowest rank comes first.
///
///   steps log2 n, floor(log2 n) + 2 where n is no power of two   sent per rank bytes·steps
Schedule exchange_all(const Shape& shape, const Butterfly& butterfly);

/// All-reduce: partners exchange halves of their data, then, in opposite order, the results. `chunk_of`: the chunk
/// whose sum ends at participant i.
///
///   steps 2·log2 n, 2·floor(log2 n) + 2 where n is no power of two   sent per rank 2·bytes·(n-1)/n
Schedule halve_and_double(const Shape& shape, const Butterfly& butterfly, const std::vector<int>& chunk_of);

/// Reduce-scatter: the first half of halve_and_double. Sums of other ranks' blocks are in scratch.
Schedule halve(const Shape& shape, const Butterfly& butterfly);

/// All-gather: the second half of halve_and_double, for powers of two.
Schedule double_up(const Shape& shape, const Butterfly& butterfly);

/// The number of blocks in the largest message of halve_and_double, halve and double_up.
int exchange_items(const Shape& shape, int parameter);

}  // namespace tutti
