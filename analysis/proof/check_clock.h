// The happened-before order of accesses: vector clocks, and cells of memory that detect two unordered accesses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "plan/types.h"

namespace tutti::proof {

/// Vector clocks of one width in one array. An index names a row, since the array moves when it grows. Each row has one
/// link, so that rows can be queued without allocation.
class Clocks {
 public:
  using Row = std::uint32_t;
  static constexpr Row none = std::numeric_limits<Row>::max();

  explicit Clocks(int width) : width_(static_cast<std::size_t>(width)) {}

  Row take();  ///< an unused row with unspecified content
  void give(Row row);

  std::uint32_t* at(Row row) { return counts_.data() + row * width_; }
  const std::uint32_t* at(Row row) const { return counts_.data() + row * width_; }
  std::size_t width() const { return width_; }
  Row& next(Row row) { return next_[row]; }

  void clear(Row row) { std::fill_n(at(row), width_, 0u); }
  void copy(Row to, Row from) { std::copy_n(at(from), width_, at(to)); }
  void join(Row into, Row other);
  /// The next time of `rank`.
  void tick(Row row, Rank rank) { ++at(row)[static_cast<std::size_t>(rank)]; }

 private:
  std::size_t width_;
  std::vector<std::uint32_t> counts_;
  std::vector<Row> next_;
  Row free_ = none;
};

/// One access: its rank, and the rank's time. Time 0 is before everything.
struct Moment {
  std::uint32_t rank = 0;
  std::uint32_t time = 0;
};

/// A block of memory of one tile: its content, its last writer, and its readers since.
struct Cell {
  std::uint32_t term = 0;
  Moment written;
  Moment read;                         ///< the last read, if all reads so far are ordered
  Clocks::Row readers = Clocks::none;  ///< otherwise the time of each rank's last read
};

/// Another access that is not ordered with this one.
struct Conflict {
  bool found = false;
  Rank other = 0;
  bool other_wrote = false;
};

/// Records an access by `rank`, whose clock is `now`, and returns the conflicting access, if any.
Conflict note_read(Cell& cell, Clocks& clocks, Rank rank, Clocks::Row now);
Conflict note_write(Cell& cell, Clocks& clocks, Rank rank, Clocks::Row now);

}  // namespace tutti::proof
