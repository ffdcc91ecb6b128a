// Numbers for the blocks of a schedule.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/schedule.h"

namespace tutti {

/// Numbers every block of every rank, or of the only one that the schedule is about. In place, an input block has the
/// number of the output block whose memory it shares.
class Cells {
 public:
  Cells(const Schedule& schedule, bool in_place);
  std::size_t at(Rank rank, Ref ref) const {
    return numbers_[first_[static_cast<std::size_t>(rank - first_rank_) * 3 + static_cast<std::size_t>(ref.buffer)] +
                    static_cast<std::size_t>(ref.block)];
  }
  std::size_t size() const { return numbers_.size(); }

 private:
  Rank first_rank_;
  std::vector<std::size_t> first_;  // by 3 * rank + buffer
  std::vector<std::size_t> numbers_;
};

}  // namespace tutti
