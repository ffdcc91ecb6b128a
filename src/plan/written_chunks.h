// Which chunks have been written to: in a step before the present one, and in the present one.
#pragma once

#include <cassert>
#include <cstddef>
#include <vector>

#include "plan/types.h"

namespace tutti {

/// A rank's vector has `chunks` chunks.
class WrittenChunks {
 public:
  /// `one_rank`: all chunks are that rank's.
  WrittenChunks(int ranks, int chunks, bool one_rank)
      : chunks_(chunks),
        stride_(one_rank ? 0 : static_cast<std::size_t>(chunks)),
        written_(static_cast<std::size_t>(one_rank ? 1 : ranks) * static_cast<std::size_t>(chunks)) {}

  bool before(Rank rank, int chunk) const { return (written_[index(rank, chunk)] & earlier) != 0; }
  /// True for the first time in this step.
  bool write(Rank rank, int chunk) {
    char& written = written_[index(rank, chunk)];
    if (written & now) return false;
    written = static_cast<char>(written | now);
    now_.push_back(index(rank, chunk));
    return true;
  }
  void next_step() {
    for (const std::size_t chunk : now_) written_[chunk] = earlier;
    now_.clear();
  }

 private:
  enum : char { earlier = 1, now = 2 };
  std::size_t index(Rank rank, int chunk) const {
    assert(chunk >= 0 && chunk < chunks_);
    return static_cast<std::size_t>(rank) * stride_ + static_cast<std::size_t>(chunk);
  }

  int chunks_;
  std::size_t stride_;         // from one rank to the next
  std::vector<char> written_;  // by rank and chunk
  std::vector<std::size_t> now_;
};

}  // namespace tutti
