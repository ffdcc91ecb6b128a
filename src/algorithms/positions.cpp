#include "algorithms/positions.h"

#include <algorithm>
#include <cassert>
#include <vector>

namespace tutti {
namespace {

Level in_order(const Level& level, const std::vector<Rank>& order) {
  constexpr int unknown = -1;
  std::vector<int> numbers(static_cast<std::size_t>(std::ranges::max(level)) + 1, unknown);
  int known = 0;
  Level groups;
  groups.reserve(order.size());
  for (const Rank rank : order) {
    int& number = numbers[static_cast<std::size_t>(level[static_cast<std::size_t>(rank)])];
    if (number == unknown) number = known++;
    groups.push_back(number);
  }
  return groups;
}

/// Turns a place named by positions into one named by ranks. `rank`: whose buffer it is.
Ref renamed(const Shape& shape, int parts, Rank rank, const Ref& at) {
  int groups = 0;
  if (at.buffer == Buffer::input) groups = input_groups(shape.collective, shape.ranks, rank, shape.root);
  if (at.buffer == Buffer::output) groups = output_groups(shape.collective, shape.ranks, rank, shape.root);
  if (groups != shape.ranks) return at;  // the rank's own group, or scratch, whose layout is the algorithm's
  const Rank owner = shape.order[static_cast<std::size_t>(at.block / parts)];
  return {.buffer = at.buffer, .block = owner * parts + at.block % parts};
}

}  // namespace

Shape positions_of(const Shape& shape) {
  if (!has_positions(shape)) return shape;
  assert(shape.order.size() == static_cast<std::size_t>(shape.ranks));
  Shape seen = shape;
  seen.order.clear();
  std::vector<Rank> positions(shape.order.size());
  for (Rank at = 0; at < shape.ranks; ++at)
    positions[static_cast<std::size_t>(shape.order[static_cast<std::size_t>(at)])] = at;
  const auto position = [&](Rank rank) { return positions[static_cast<std::size_t>(rank)]; };
  seen.root = position(shape.root);
  if (shape.only != Shape::everybody) seen.only = position(shape.only);
  for (Level& level : seen.levels) level = in_order(level, shape.order);
  for (std::vector<Rank>& ring : seen.rings) std::ranges::transform(ring, ring.begin(), position);
  return seen;
}

Schedule by_rank(const Schedule& by_position, const Shape& shape) {
  const int parts = by_position.parts();
  Schedule schedule(shape, parts);
  for (const Transfer& transfer : by_position.transfers()) {
    schedule.begin_step(transfer.step);
    const Rank from = shape.order[static_cast<std::size_t>(transfer.from)];
    const Rank to = shape.order[static_cast<std::size_t>(transfer.to)];
    const Ref src = renamed(shape, parts, from, transfer.src), dst = renamed(shape, parts, to, transfer.dst);
    if (transfer.kind == Kind::reduce)
      schedule.reduce(from, src, to, dst, transfer.order, transfer.inputs);
    else
      schedule.copy(from, src, to, dst);
  }
  schedule.end_at(by_position.steps());
  return schedule;
}

}  // namespace tutti
