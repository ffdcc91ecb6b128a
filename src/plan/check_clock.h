// Which access happened before which: vector clocks, and cells of memory that notice two accesses without an order.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "plan/types.h"

namespace tutti::proof {

/// Vector clocks of one width in one array. Rows are named by index, since the array moves when it grows; each row has
/// one link, so that rows can be queued without allocation.
class Clocks {
 public:
  using Row = std::uint32_t;
  static constexpr Row none = std::numeric_limits<Row>::max();

  explicit Clocks(int width) : width_(static_cast<std::size_t>(width)) {}

  Row take();  ///< a row, its contents unspecified
  void give(Row row);

  std::uint32_t* at(Row row) { return counts_.data() + row * width_; }
  const std::uint32_t* at(Row row) const { return counts_.data() + row * width_; }
  std::size_t width() const { return width_; }
  Row& next(Row row) { return next_[row]; }

  void clear(Row row);
  void copy(Row to, Row from);
  void join(Row into, Row other);

 private:
  std::size_t width_;
  std::vector<std::uint32_t> counts_;
  std::vector<Row> next_;
  Row free_ = none;
};

/// One access: by whom, at which of its times. Time 0 is before everything.
struct Moment {
  std::uint32_t rank = 0;
  std::uint32_t time = 0;
};

/// A block of memory of one tile: what it holds, who wrote it last and who has read it since.
struct Cell {
  std::uint32_t term = 0;
  Moment written;
  Moment read;                         ///< the last read, when all reads so far are ordered
  Clocks::Row readers = Clocks::none;  ///< else the time of each rank's last read
};

/// Another access that has no order with this one.
struct Conflict {
  bool found = false;
  Rank other = 0;
  bool other_wrote = false;
};

/// Records an access by `rank`, whose clock is `now`, and tells what it conflicts with.
Conflict note_read(Cell& cell, Clocks& clocks, Rank rank, Clocks::Row now);
Conflict note_write(Cell& cell, Clocks& clocks, Rank rank, Clocks::Row now);

}  // namespace tutti::proof
