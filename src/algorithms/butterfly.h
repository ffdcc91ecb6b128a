// What algorithms share whose ranks exchange with one partner after the other, in log2 n steps.
#pragma once

#include <vector>

#include "plan/schedule.h"

namespace tutti {

/// Who exchanges with whom: a power of two of participants that have all met, directly or not, when the steps are done.
/// Ranks beyond a power of two are *folded*: an active neighbour takes part on their behalf as well.
class Butterfly {
 public:
  /// `partner_of(i, step, size)`: of participant `i` in `step`, counted from 0; the partner's partner is `i`.
  Butterfly(int ranks, int (*partner_of)(int i, int step, int size));

  int size() const { return size_; }    ///< participants
  int steps() const { return steps_; }  ///< log2 of size
  int folded() const { return ranks_ - size_; }
  int partner(int i, int step) const { return partners_[at(i, step)]; }

  Rank rank(int i) const { return i < folded() ? 2 * i + 1 : i + folded(); }
  bool folds(int i) const { return i < folded(); }
  Rank guest(int i) const { return 2 * i; }  ///< the rank that `i` folds
  std::vector<Rank> members(int i) const;    ///< the ranks on whose behalf `i` takes part, in order

  /// Whom `i` meets in steps [step, steps), directly or through others, itself included; in ascending order. Halving,
  /// it keeps theirs when `step` begins.
  const std::vector<int>& ahead(int i, int step) const { return ahead_[at(i, step)]; }

  /// A numbering of participants in which all of ahead(i, step) are next to each other.
  std::vector<int> contiguous() const;

 private:
  std::size_t at(int i, int step) const {
    return static_cast<std::size_t>(step) * static_cast<std::size_t>(size_) + static_cast<std::size_t>(i);
  }
  void number(std::vector<int>& numbers, int i, int step, int first) const;

  int ranks_;
  int size_;
  int steps_;
  std::vector<int> partners_;
  std::vector<std::vector<int>> ahead_;
};

/// All-reduce: partners exchange all they have, those of the last step first. Then any two ranks hold sums of the same
/// ranks or of none in common, and all end with the same bits; in the order of the steps sums could overlap. In an
/// addition, the sum with the lowest rank comes first.
///
///   steps log2 n, floor(log2 n) + 2 where n is no power of two   sent per rank bytes·steps
Schedule exchange_all(const Shape& shape, const Butterfly& butterfly);

/// All-reduce: partners exchange halves of what they have, then in opposite order what they got. `chunk_of`: which
/// chunk ends at participant i.
///
///   steps 2·log2 n, 2·floor(log2 n) + 2 where n is no power of two   sent per rank 2·bytes·(n-1)/n
Schedule halve_and_double(const Shape& shape, const Butterfly& butterfly, const std::vector<int>& chunk_of);

/// Reduce-scatter: the first half of that. Sums of others' blocks lie in scratch.
Schedule halve(const Shape& shape, const Butterfly& butterfly);

/// All-gather: the second half, for powers of two.
Schedule double_up(const Shape& shape, const Butterfly& butterfly);

}  // namespace tutti
