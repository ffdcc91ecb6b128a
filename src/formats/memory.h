// The memory that a plan from elsewhere works on, chunk by chunk.
#pragma once

#include <cstddef>
#include <vector>

#include "base/error.h"
#include "plan/schedule.h"

namespace tutti::formats {

/// One chunk of one rank's memory, by number. In place, an input chunk and the output chunk that is the same memory are
/// one cell.
using Cell = int;

/// What is known of a plan before its instructions.
struct Buffers {
  Shape shape;
  int parts = 1;
  bool in_place = false;
  std::vector<int> scratch_chunks = {};  ///< by rank
};

class Memory {
 public:
  static constexpr Cell none = -1;

  /// Errors: invalid_argument, where all buffers together have more than blocks_max chunks.
  static Result<Memory> of(const Buffers& buffers);

  /// How many chunks `rank` may name in that buffer.
  int chunks(Rank rank, Buffer buffer) const { return static_cast<int>(cells(rank, buffer).size()); }
  /// Requires 0 <= chunk < chunks(rank, buffer).
  Cell cell(Rank rank, Buffer buffer, int chunk) const { return cells(rank, buffer)[static_cast<std::size_t>(chunk)]; }

  /// `count` further cells of a rank, numbered in a row: what a message holds on its way, or a sum that is only passed
  /// on. Returns the first.
  Cell add(Rank rank, int count);

  int size() const { return static_cast<int>(about_.size()); }
  Rank rank(Cell cell) const { return at(cell).rank; }
  int input_block(Cell cell) const { return at(cell).input_block; }    ///< what it holds at the start; or none
  int output_block(Cell cell) const { return at(cell).output_block; }  ///< where its last value belongs; or none

 private:
  struct About {
    Rank rank = 0;
    int input_block = none;
    int output_block = none;
  };

  const About& at(Cell cell) const { return about_[static_cast<std::size_t>(cell)]; }
  const std::vector<Cell>& cells(Rank rank, Buffer buffer) const {
    return cells_[static_cast<std::size_t>(rank) * 3 + static_cast<std::size_t>(buffer)];
  }
  void lay_out(const Buffers& buffers, Rank rank);

  std::vector<About> about_;              // by cell
  std::vector<std::vector<Cell>> cells_;  // by 3 * rank + buffer
};

}  // namespace tutti::formats
