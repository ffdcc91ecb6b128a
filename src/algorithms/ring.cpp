// Data travels from neighbour to neighbour.
#include "algorithms/algorithm.h"

namespace tutti {
namespace {

bool supports(const Shape& shape, int) {
  return shape.ranks > 1 && (shape.collective == Collective::all_reduce || shape.collective == Collective::all_gather ||
                             shape.collective == Collective::reduce_scatter);
}

/// Each chunk travels the ring once to gather the sum, once more to spread it.
Schedule all_reduce(const Shape& shape) {
  const int n = shape.ranks;
  const auto wrap = [n](int i) { return (i % n + n) % n; };

  Schedule ring(shape, /*parts=*/n);
  for (int step = 0; step < n - 1; ++step, ring.next_step())
    for (Rank rank = 0; rank < n; ++rank) ring.reduce(rank, wrap(rank + 1), wrap(rank - step));
  for (int step = 0; step < n - 1; ++step, ring.next_step())
    for (Rank rank = 0; rank < n; ++rank) ring.copy(rank, wrap(rank + 1), wrap(rank + 1 - step));
  return ring;
}

/// The sum of block b starts at rank b + 1 and arrives at b. On its way it lies in scratch.
Schedule reduce_scatter(const Shape& shape) {
  const int n = shape.ranks;
  const auto wrap = [n](int i) { return (i % n + n) % n; };

  Schedule ring(shape, /*parts=*/1);
  for (int step = 0; step < n - 1; ++step, ring.next_step())
    for (Rank rank = 0; rank < n; ++rank) {
      const int block = wrap(rank - 1 - step);
      const Rank next = wrap(rank + 1);
      const Ref sum = next == block ? Ref{Buffer::output, 0} : Ref{Buffer::scratch, step % 2};
      ring.reduce(rank, step == 0 ? Ref{Buffer::input, block} : Ref{Buffer::scratch, (step - 1) % 2}, next, sum, 0);
      ring.reduce(next, {Buffer::input, block}, next, sum, 1);
    }
  return ring;
}

Schedule all_gather(const Shape& shape) {
  const int n = shape.ranks;
  const auto wrap = [n](int i) { return (i % n + n) % n; };

  Schedule ring(shape, /*parts=*/1);
  for (Rank rank = 0; rank < n; ++rank) ring.copy(rank, {Buffer::input, 0}, rank, {Buffer::output, rank});
  for (int step = 0; step < n - 1; ++step, ring.next_step())
    for (Rank rank = 0; rank < n; ++rank) {
      const int group = wrap(rank - step);
      ring.copy(rank, step == 0 ? Ref{Buffer::input, 0} : Ref{Buffer::output, group}, wrap(rank + 1),
                {Buffer::output, group});
    }
  return ring;
}

/// Ring: all links carry equally much, each rank talks to its neighbours alone.
///
///   all-reduce      steps 2(n-1)   sent per rank 2·bytes·(n-1)/n
///   reduce-scatter,
///   all-gather      steps n-1      sent per rank bytes·(n-1)/n     any n ≥ 2   order of sums: ring order
///
/// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009.
Schedule build(const Shape& shape, int) {
  if (shape.collective == Collective::all_reduce) return all_reduce(shape);
  return shape.collective == Collective::all_gather ? all_gather(shape) : reduce_scatter(shape);
}

/// A reduce-scatter's sums are in scratch when the neighbour wants them.
bool carried_by(Collective collective, Reach reach) {
  return reach != Reach::line && collective != Collective::reduce_scatter;
}

}  // namespace

const Family algorithm::ring{.name = "ring", .supports = supports, .build = build, .carried_by = carried_by};

}  // namespace tutti
