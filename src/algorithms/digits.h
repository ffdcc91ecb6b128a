// What algorithms of radix k share: ranks as numbers of base k.
#pragma once

#include <algorithm>

#include "plan/types.h"

namespace tutti {

/// A power of k *active* ranks take part; each stands for a run of at most k ranks, itself the first of them.
class Digits {
 public:
  /// A radix beyond the number of ranks is that number.
  Digits(int ranks, int radix) : ranks_(ranks), radix_(std::min(radix, ranks)) {
    while (active_ <= ranks / radix_) active_ *= radix_;
  }

  int radix() const { return radix_; }
  int active() const { return active_; }
  /// The i-th active rank; its run ends where that of i + 1 begins.
  Rank rank(int i) const { return static_cast<Rank>(static_cast<long long>(i) * ranks_ / active_); }
  int digit(int i, int distance) const { return i / distance % radix_; }
  /// `i` with another digit at that distance, a power of k.
  int with(int i, int distance, int digit) const { return i + (digit - this->digit(i, distance)) * distance; }

 private:
  int ranks_;
  int radix_;
  int active_ = 1;
};

}  // namespace tutti
