// Neighbours exchange the blocks they received last, alternately left and right.
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"

namespace tutti {
namespace {

bool supports(const Shape& shape, int) {
  return shape.ranks > 1 && shape.ranks % 2 == 0 && shape.collective == Collective::all_gather;
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
  for (Rank rank = 0; rank < n; ++rank) {
    schedule.copy(rank, {Buffer::input, 0}, rank, {Buffer::output, rank});
    schedule.copy(rank, {Buffer::input, 0}, rank ^ 1, {Buffer::output, rank});
  }
  schedule.next_step();

  std::vector<int> newest;  // of each rank: the pair of blocks to pass on
  for (Rank rank = 0; rank < n; ++rank) newest.push_back(rank / 2);
  for (int step = 1; step < n / 2; ++step, schedule.next_step()) {
    std::vector<int> next(newest.size());
    for (Rank rank = 0; rank < n; ++rank) {
      const bool up = (rank % 2 == 0) == (step % 2 == 0);
      const Rank to = (rank + (up ? 1 : n - 1)) % n;
      const int pair = newest[static_cast<std::size_t>(rank)];
      for (const int group : {2 * pair, 2 * pair + 1})
        schedule.copy(rank, group == rank ? Ref{Buffer::input, 0} : Ref{Buffer::output, group}, to,
                      {Buffer::output, group});
      next[static_cast<std::size_t>(to)] = pair;
    }
    newest = std::move(next);
  }
  return schedule;
}

}  // namespace

const Family algorithm::neighbour_exchange{
    .name = "neighbour_exchange", .supports = supports, .build = build, .carried_by = carried_except_inline};

}  // namespace tutti
