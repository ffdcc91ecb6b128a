// The memory of an imported plan, chunk by chunk.
#pragma once

#include <cstddef>
#include <vector>

#include "base/error.h"
#include "plan/schedule.h"

namespace tutti::formats {

/// The number of one chunk of one rank's memory. In place, an input chunk and the output chunk in the same memory are
/// one cell.
using Cell = int;

/// The properties of a plan that are known before its instructions are read.
struct Buffers {
  Shape shape;
  int parts = 1;
  bool in_place = false;
  std::vector<int> scratch_chunks = {};  ///< by rank
};

class Memory {
 public:
  static constexpr Cell none = -1;

  /// Errors: invalid_argument, if all buffers together have more than blocks_max chunks.
  static Result<Memory> of(const Buffers& buffers);

  /// The number of chunks that `rank` has in that buffer.
  int chunks(Rank rank, Buffer buffer) const { return static_cast<int>(cells(rank, buffer).size()); }
  /// Requires 0 <= chunk < chunks(rank, buffer).
  Cell cell(Rank rank, Buffer buffer, int chunk) const { return cells(rank, buffer)[static_cast<std::size_t>(chunk)]; }

  /// Adds `count` cells of a rank, numbered consecutively, for the content of a message in flight or a sum that is only
  /// passed on. Returns the first.
  Cell add(Rank rank, int count);

  int size() const { return static_cast<int>(about_.size()); }
  Rank rank(Cell cell) const { return at(cell).rank; }
  int input_block(Cell cell) const { return at(cell).input_block; }    ///< its content at the start; or none
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
