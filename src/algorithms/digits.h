// The common part of algorithms of radix k: ranks as numbers to base k.
#pragma once

#include <algorithm>

#include "plan/schedule.h"

namespace tutti {

/// The number of *active* ranks is a power of k; each stands for a run of at most k ranks, of which it is the first.
class Digits {
 public:
  /// A radix larger than the number of ranks is reduced to that number.
  Digits(int ranks, int radix) : ranks_(ranks), radix_(std::min(radix, ranks)) {
    while (active_ <= ranks / radix_) active_ *= radix_;
  }

  int radix() const { return radix_; }
  int active() const { return active_; }
  /// The i-th active rank; its run ends where the run of i + 1 begins.
  Rank rank(int i) const { return static_cast<Rank>(static_cast<long long>(i) * ranks_ / active_); }
  /// How many ranks those stand for that `i` has met at shorter distances than this one, directly or through others.
  int ranks_met(int i, int distance) const {
    const int first = i / distance * distance;
    return rank(first + distance) - rank(first);
  }
  int digit(int i, int distance) const { return i / distance % radix_; }
  /// `i` with another digit at `distance`, a power of k.
  int with(int i, int distance, int digit) const { return i + (digit - this->digit(i, distance)) * distance; }

 private:
  int ranks_;
  int radix_;
  int active_ = 1;
};

/// A step, unless all ranks are active: calls `visit` with each rank that is not, and the active one that stands for
/// it, if the transfers between the two are kept.
template <class Visit>
void fold_step(Schedule& schedule, const Digits& digits, Visit visit) {
  for (int i = 0; i < digits.active(); ++i)
    for (Rank rank = digits.rank(i) + 1; rank < digits.rank(i + 1); ++rank)
      if (schedule.keeps(rank, digits.rank(i))) visit(rank, digits.rank(i));
  if (digits.active() < schedule.ranks()) schedule.next_step();
}

/// Calls `visit` with the i-th active rank and one that differs from it in the digit at `distance`, for all such pairs
/// between which transfers are kept.
template <class Visit>
void for_each_pair(const Schedule& schedule, const Digits& digits, int distance, Visit visit) {
  for (int i = 0; i < digits.active(); ++i)
    for (int digit = 0; digit < digits.radix(); ++digit)
      if (const int to = digits.with(i, distance, digit); to != i && schedule.keeps(digits.rank(i), digits.rank(to)))
        visit(i, to);
}

/// In a level of subtrees of `span` ranks, `top` has its own subtree and gets the others of up to radix · span ranks as
/// children: use(top, below, end of below's subtree).
template <class Use>
void for_each_branch(int n, int radix, int span, Use use) {
  for (int top = 0; top < n; top += radix * span)
    for (int below = top + span; below < std::min(n, top + radix * span); below += span)
      use(top, below, std::min(n, below + span));
}

}  // namespace tutti
