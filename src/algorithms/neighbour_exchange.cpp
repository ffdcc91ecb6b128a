// Neighbours exchange the blocks they received last, alternately left and right.
#include "algorithms/algorithm.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

bool supports(const Shape& shape, int) {
  return shape.ranks > 1 && shape.ranks % 2 == 0 && shape.collective == Collective::all_gather;
}

/// The pair of blocks that `rank` received last before `step` > 0. They come from ever farther away, by turns from
/// below and from above.
int newest_pair(Rank rank, int step, int pairs) {
  const int away = step % 2 == 1 ? (step - 1) / 2 : -step / 2;
  return ((rank / 2 + (rank % 2 == 0 ? away : -away)) % pairs + pairs) % pairs;
}

/// Neighbour exchange: a rank exchanges its block with one neighbour. Then, alternately with the other and the first
/// neighbour, it exchanges the two blocks that it received last, which belong to a pair of ranks.
///
///   steps n/2   sent per rank bytes·(n-1)/n   n even
///
/// Half the steps of a ring, and both directions of a link are in use.
/// Chen, Zhang, Zhang and Yuan, "Performance evaluation of allgather algorithms on terascale Linux cluster with fast
/// Ethernet", HPC Asia 2005.
Schedule build(const Shape& shape, int) {
  const int n = shape.ranks;
  Schedule schedule(shape, /*parts=*/1);
  for_each_sender(
      shape, [](Rank rank) { return rank ^ 1; },
      [&](Rank rank) {
        schedule.copy(rank, {Buffer::input, 0}, rank, {Buffer::output, rank});
        schedule.copy(rank, {Buffer::input, 0}, rank ^ 1, {Buffer::output, rank});
      });
  schedule.next_step();

  for (int step = 1; step < n / 2; ++step, schedule.next_step()) {
    const auto partner = [=](Rank rank) {
      const bool up = (rank % 2 == 0) == (step % 2 == 0);
      return (rank + (up ? 1 : n - 1)) % n;
    };
    for_each_sender(shape, partner, [&](Rank rank) {
      const int pair = newest_pair(rank, step, n / 2);
      for (const int group : {2 * pair, 2 * pair + 1}) pass_on(schedule, group, rank, partner(rank));
    });
  }
  return schedule;
}

int items(const Shape& shape, int) {
  return shape.ranks == 2 ? 1 : 2;
}

}  // namespace

const Family algorithm::neighbour_exchange{.name = "neighbour_exchange",
                                           .supports = supports,
                                           .build = build,
                                           .carried_by = carried_except_inline,
                                           .items = items,
                                           .classes = Classes::folded};

}  // namespace tutti
