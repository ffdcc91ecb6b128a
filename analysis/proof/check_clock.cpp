// The happened-before order of accesses.
#include "analysis/proof/check_clock.h"

#include <algorithm>

namespace tutti::proof {

Clocks::Row Clocks::take() {
  if (free_ != none) {
    const Row row = free_;
    free_ = next_[row];
    return row;
  }
  counts_.resize(counts_.size() + width_);
  next_.push_back(none);
  return static_cast<Row>(next_.size() - 1);
}

void Clocks::give(Row row) {
  next_[row] = free_;
  free_ = row;
}

void Clocks::join(Row into, Row other) {
  std::uint32_t* const to = at(into);
  const std::uint32_t* const from = at(other);
  for (std::size_t i = 0; i < width_; ++i) to[i] = std::max(to[i], from[i]);
}

namespace {

bool before(Moment moment, const std::uint32_t* now) {
  return moment.time <= now[moment.rank];
}

}  // namespace

Conflict note_read(Cell& cell, Clocks& clocks, Rank rank, Clocks::Row now) {
  const std::uint32_t* clock = clocks.at(now);
  if (!before(cell.written, clock)) return {true, static_cast<Rank>(cell.written.rank), true};

  const auto reader = static_cast<std::uint32_t>(rank);
  const Moment moment{reader, clock[reader]};
  if (cell.readers == Clocks::none) {
    if (cell.read.rank == reader || before(cell.read, clock)) {
      cell.read = moment;
      return {};
    }
    cell.readers = clocks.take();
    clocks.clear(cell.readers);
    clocks.at(cell.readers)[cell.read.rank] = cell.read.time;
  }
  clocks.at(cell.readers)[reader] = moment.time;
  return {};
}

Conflict note_write(Cell& cell, Clocks& clocks, Rank rank, Clocks::Row now) {
  const std::uint32_t* clock = clocks.at(now);
  if (!before(cell.written, clock)) return {true, static_cast<Rank>(cell.written.rank), true};
  if (!before(cell.read, clock)) return {true, static_cast<Rank>(cell.read.rank), false};
  if (cell.readers != Clocks::none) {
    const std::uint32_t* reads = clocks.at(cell.readers);
    for (std::size_t i = 0; i < clocks.width(); ++i)
      if (reads[i] > clock[i]) return {true, static_cast<Rank>(i), false};
    clocks.give(cell.readers);
    cell.readers = Clocks::none;
  }
  const auto writer = static_cast<std::uint32_t>(rank);
  cell.written = {writer, clock[writer]};
  cell.read = {};
  return {};
}

}  // namespace tutti::proof
