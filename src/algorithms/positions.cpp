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

/// Turns places of positions into places of ranks.
class Renaming {
 public:
  explicit Renaming(const Shape& shape, int parts) : shape_(shape), parts_(parts) {}

  Rank rank(Rank position) const { return shape_.order[static_cast<std::size_t>(position)]; }
  /// `rank`: whose buffer it is.
  Ref ref(Rank rank, const Ref& at) const {
    const auto groups = at.buffer == Buffer::input ? input_groups(shape_.collective, shape_.ranks, rank, shape_.root)
                        : at.buffer == Buffer::output
                            ? output_groups(shape_.collective, shape_.ranks, rank, shape_.root)
                            : 0;
    if (groups != shape_.ranks) return at;  // the rank's own group, or scratch, whose layout is the algorithm's
    return {.buffer = at.buffer, .block = this->rank(at.block / parts_) * parts_ + at.block % parts_};
  }

 private:
  const Shape& shape_;
  int parts_;
};

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
  Schedule schedule(shape, by_position.parts());
  const Renaming renaming(shape, by_position.parts());
  for (const Transfer& transfer : by_position.transfers()) {
    schedule.begin_step(transfer.step);
    const Rank from = renaming.rank(transfer.from), to = renaming.rank(transfer.to);
    const Ref src = renaming.ref(from, transfer.src), dst = renaming.ref(to, transfer.dst);
    if (transfer.kind == Kind::reduce)
      schedule.reduce(from, src, to, dst, transfer.order, transfer.inputs);
    else
      schedule.copy(from, src, to, dst);
  }
  schedule.end_at(by_position.steps());
  return schedule;
}

}  // namespace tutti
