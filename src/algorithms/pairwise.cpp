// One partner at a time.
#include <bit>

#include "algorithms/algorithm.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

/// Pairwise exchange: in step s every rank sends one partner its data, and receives from one partner.
///
///   steps n-1   sent per rank bytes·(n-1)/n   any n ≥ 2   order of sums: as they come, by rank in each addition
///
/// With a power of two, ranks exchange with rank xor s, so both directions of a link are in use; otherwise they send s
/// ahead, cyclically.
/// Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005.
Schedule build(const Shape& shape, int) {
  const int n = shape.ranks;
  const bool adds = shape.collective == Collective::reduce_scatter;
  const bool power_of_two = std::has_single_bit(static_cast<unsigned>(n));
  Schedule schedule(shape, /*parts=*/1);
  for_each_rank(shape, [&](Rank rank) {
    if (!adds) schedule.copy(rank, {Buffer::input, rank}, rank, {Buffer::output, rank});
  });
  for (int step = 1; step < n; ++step, schedule.next_step()) {
    const auto sender = [&](Rank to) { return power_of_two ? to ^ step : (to - step + n) % n; };
    for_each_sender(shape, sender, [&](Rank rank) {
      const Rank to = power_of_two ? rank ^ step : (rank + step) % n;
      if (!adds) {
        schedule.copy(rank, {Buffer::input, to}, to, {Buffer::output, rank});
        return;
      }
      const Ref sum{Buffer::output, 0};
      schedule.reduce(to, step == 1 ? Ref{Buffer::input, to} : sum, to, sum, to);
      schedule.reduce(rank, {Buffer::input, to}, to, sum, rank);
    });
    // Partners of far steps are alike; those of the first may be on the same host.
    constexpr int kept = 256;
    if (!schedule.is_observed() || step != kept || n <= 2 * kept) continue;
    schedule.repeat(n - 2 * kept);
    step += n - 2 * kept;
  }
  return schedule;
}

}  // namespace

const Family algorithm::pairwise{.name = "pairwise",
                                 .supports = supports_any_of<Collective::all_to_all, Collective::reduce_scatter>,
                                 .build = build,
                                 .carried_by = carried_except_inline,
                                 .items = one_item,
                                 .direct = always_direct,
                                 .classes = Classes::one};

}  // namespace tutti
