// The buffers of all ranks as cells. An output in place shares the cells of its input.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "analysis/proof/check_clock.h"
#include "analysis/proof/check_terms.h"
#include "plan/schedule.h"

namespace tutti::proof {

/// The number of blocks in a rank's buffer.
int blocks_of(const Schedule& schedule, Rank rank, Buffer buffer);

class Memory {
 public:
  /// `in_place`: by rank; empty: none.
  Memory(const Schedule& schedule, int tiles, const std::vector<bool>& in_place);

  Cell& at(Rank rank, Buffer buffer, int block, int tile) {
    const std::size_t first = ranks_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(buffer)].first;
    return cells_[(first + static_cast<std::size_t>(block)) * tiles_ + static_cast<std::size_t>(tile)];
  }
  int blocks(Rank rank, Buffer buffer) const {
    return ranks_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(buffer)].count;
  }

  /// Sets a rank's memory at the start of a call: its contributions in the input, nothing elsewhere. `written`: when
  /// each channel wrote it; tiles are assigned to channels in turn.
  void fill(Rank rank, const Terms& terms, std::span<const Moment> written);

 private:
  struct Blocks {
    int count = 0;
    std::size_t first = 0;
  };
  std::size_t tiles_;
  std::vector<std::array<Blocks, 3>> ranks_;  // by buffer
  std::vector<Cell> cells_;
};

}  // namespace tutti::proof
