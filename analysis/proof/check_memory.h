// The buffers of all ranks as cells. An output in place shares the cells of its input.
#pragma once

#include <span>
#include <vector>

#include "analysis/proof/check_clock.h"
#include "analysis/proof/check_terms.h"
#include "plan/schedule.h"

namespace tutti::proof {

/// Numbers of blocks in a rank's buffers.
struct BlockCounts {
  int input = 0;
  int output = 0;
  int scratch = 0;
};
BlockCounts block_counts(const Schedule& schedule, Rank rank);

class Memory {
 public:
  /// `in_place`: by rank; empty: none.
  Memory(const Schedule& schedule, int tiles, const std::vector<bool>& in_place);

  Cell& at(Rank rank, Buffer buffer, int block, int tile) {
    const Blocks& r = ranks_[static_cast<std::size_t>(rank)];
    const std::size_t base = buffer == Buffer::input ? r.input : buffer == Buffer::output ? r.output : r.scratch;
    return cells_[(base + static_cast<std::size_t>(block)) * tiles_ + static_cast<std::size_t>(tile)];
  }
  const BlockCounts& counts(Rank rank) const { return ranks_[static_cast<std::size_t>(rank)].counts; }

  /// Sets a rank's memory at the start of a call: its contributions in the input, nothing elsewhere. `written`: when
  /// each channel wrote it; tiles are assigned to channels in turn.
  void fill(Rank rank, const Terms& terms, std::span<const Moment> written);

 private:
  struct Blocks {
    BlockCounts counts;
    std::size_t input = 0;
    std::size_t output = 0;
    std::size_t scratch = 0;
  };
  std::size_t tiles_;
  std::vector<Blocks> ranks_;
  std::vector<Cell> cells_;
};

}  // namespace tutti::proof
