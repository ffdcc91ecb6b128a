// How many operands each reduction of one step has.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "plan/ref.h"
#include "plan/types.h"

namespace tutti {

class OperandCounts {
 public:
  /// `one_rank`: all reductions are that rank's.
  explicit OperandCounts(bool one_rank) : one_rank_(one_rank) {}

  /// Adds an operand to the reduction into `dst`, and returns how many it has.
  int add(Rank rank, Ref dst) {
    if (!one_rank_)
      return ++all_[(static_cast<std::size_t>(rank) << 34) + (static_cast<std::size_t>(dst.buffer) << 32) +
                    static_cast<std::size_t>(dst.block)];
    int& count = own_.at(dst);
    if (count == 0) reduced_.push_back(dst);
    return ++count;
  }
  void clear() {
    all_.clear();
    for (const Ref& dst : reduced_) own_.at(dst) = 0;
    reduced_.clear();
  }

 private:
  bool one_rank_;
  std::unordered_map<std::size_t, int> all_;  // by rank and destination
  BlockTable<int> own_;                       // the same of one rank
  std::vector<Ref> reduced_;                  // where it is not 0
};

}  // namespace tutti
