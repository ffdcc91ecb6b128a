// The root and one other rank at a time.
#include "algorithms/algorithm.h"

namespace tutti {
namespace {

/// Linear: the root communicates with one rank in each step; all bytes cross its link, none is forwarded.
///
///   steps n-1   the root sends (reduce, gather: receives) bytes·(n-1) (broadcast, reduce), bytes·(n-1)/n (scatter,
///   gather); the others send bytes, bytes/n or nothing   any n ≥ 2, any root
///   order of sums: as they come, by rank in each addition
Schedule build(const Shape& shape, int) {
  const int n = shape.ranks;
  const Rank root = shape.root;
  Schedule schedule(shape, /*parts=*/1);
  const auto is = [&shape](Collective collective) { return shape.collective == collective; };
  if (is(Collective::broadcast)) schedule.copy(root, root, 0);
  if (is(Collective::gather)) schedule.copy(root, {Buffer::input, 0}, root, {Buffer::output, root});
  if (is(Collective::scatter)) schedule.copy(root, {Buffer::input, root}, root, {Buffer::output, 0});
  for (int step = 1; step < n; ++step, schedule.next_step()) {
    const Rank other = (root + step) % n;
    if (is(Collective::broadcast)) schedule.copy(root, other, 0);
    if (is(Collective::reduce)) schedule.reduce(other, root, 0);
    if (is(Collective::gather)) schedule.copy(other, {Buffer::input, 0}, root, {Buffer::output, other});
    if (is(Collective::scatter)) schedule.copy(root, {Buffer::input, other}, other, {Buffer::output, 0});
  }
  return schedule;
}

/// In a broadcast, later steps send what the root has in its output.
bool direct(const Shape& shape) {
  return shape.collective != Collective::broadcast || shape.ranks == 2;
}

}  // namespace

const Family algorithm::linear{
    .name = "linear",
    .supports = supports_any_of<Collective::broadcast, Collective::reduce, Collective::gather, Collective::scatter>,
    .build = build,
    .carried_by = carried_except_inline,
    .items = one_item,
    .direct = direct};

}  // namespace tutti
