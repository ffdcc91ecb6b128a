// Logarithmic rounds with optimal volume, for any number of ranks.
#include <algorithm>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/skips.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

// In a round, blocks [skip, end) of a rank's window are combined with blocks [0, end - skip) of the rank `skip`
// further: of circulant_skips one, and the one before it.

/// Whose inputs a rank's sums hold: by block of the window, how far behind the rank they are. Equal on all ranks.
class Summed {
 public:
  explicit Summed(const Shape& shape) : shape_(shape), behind_(static_cast<std::size_t>(shape.ranks)) {
    for (std::vector<int>& of_block : behind_) of_block = {0};
  }

  int inputs(Rank rank, int i) const {
    const std::vector<int>& behind = behind_[static_cast<std::size_t>(i)];
    if (shape_.inputs.empty()) return static_cast<int>(behind.size());
    int inputs = 0;
    for (const int distance : behind) inputs += shape_.inputs_of((rank - distance + shape_.ranks) % shape_.ranks);
    return inputs;
  }

  void end_round(int skip, int end) {
    for (int i = skip; i < end; ++i)
      for (const int distance : behind_[static_cast<std::size_t>(i)])
        behind_[static_cast<std::size_t>(i - skip)].push_back(distance + skip);
  }

 private:
  const Shape& shape_;
  std::vector<std::vector<int>> behind_;
};

Schedule all_reduce(const Shape& shape) {
  const int n = shape.ranks;
  const std::vector<int> skips = circulant_skips(n);
  Summed summed(shape);
  Schedule schedule(shape, /*parts=*/n);
  for (std::size_t round = 1; round < skips.size(); ++round, schedule.next_step()) {
    const int skip = skips[round], end = skips[round - 1];
    for_each_sender_ahead(shape, skip, [&](Rank rank) {
      for (int i = skip; i < end; ++i) schedule.reduce(rank, (rank + skip) % n, (rank + i) % n, summed.inputs(rank, i));
    });
    summed.end_round(skip, end);
  }
  for (std::size_t round = skips.size() - 1; round > 0; --round, schedule.next_step()) {
    const int skip = skips[round], end = skips[round - 1];
    for_each_sender_ahead(shape, n - skip, [&](Rank rank) {
      for (int i = 0; i < end - skip; ++i) schedule.copy(rank, (rank - skip + n) % n, (rank + i) % n);
    });
  }
  return schedule;
}

/// Block 0 of the window is the rank's own, summed in its output; sums of the other blocks are in scratch.
Schedule reduce_scatter(const Shape& shape) {
  const int n = shape.ranks;
  const auto sum = [](int i) { return i == 0 ? Ref{Buffer::output, 0} : Ref{Buffer::scratch, i - 1}; };
  int sums = 0;  // blocks [0, sums) already have one
  Summed summed(shape);
  Schedule schedule(shape, /*parts=*/1);
  const std::vector<int> skips = circulant_skips(n);
  for (std::size_t round = 1; round < skips.size(); ++round, schedule.next_step()) {
    const int skip = skips[round], end = skips[round - 1];
    const auto held = [&](Rank rank, int i) { return i < sums ? sum(i) : Ref{Buffer::input, (rank + i) % n}; };
    for_each_sender_ahead(shape, skip, [&](Rank rank) {
      for (int i = skip; i < end; ++i) {
        const Rank to = (rank + skip) % n;
        schedule.reduce(to, held(to, i - skip), to, sum(i - skip), to);
        schedule.reduce(rank, held(rank, i), to, sum(i - skip), rank, summed.inputs(rank, i));
      }
    });
    summed.end_round(skip, end);
    sums = std::max(sums, end - skip);
  }
  return schedule;
}

Schedule all_gather(const Shape& shape) {
  const int n = shape.ranks;
  Schedule schedule = with_own_blocks(shape);
  const std::vector<int> skips = circulant_skips(n);
  for (std::size_t round = skips.size() - 1; round > 0; --round, schedule.next_step()) {
    const int skip = skips[round], end = skips[round - 1];
    for_each_sender_ahead(shape, n - skip, [&](Rank rank) {
      for (int i = 0; i < end - skip; ++i) pass_on(schedule, (rank + i) % n, rank, (rank - skip + n) % n);
    });
  }
  return schedule;
}

/// Circulant graph: a rank's window is all blocks from its own on, cyclically. A round sends the upper part of the
/// window `skip` ranks ahead, where it is added to the lower part. The all-gather runs the rounds backwards.
///
///   reduce-scatter, all-gather   steps ceil(log2 n)     sent per rank bytes·(n-1)/n
///   all-reduce                   steps 2·ceil(log2 n)   sent per rank 2·bytes·(n-1)/n   any n ≥ 2
///   order of sums: by rank in each addition
///
/// Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", 2024.
Schedule build(const Shape& shape, int) {
  if (shape.collective == Collective::all_reduce) return all_reduce(shape);
  return shape.collective == Collective::all_gather ? all_gather(shape) : reduce_scatter(shape);
}

/// The first round has the largest messages.
int items(const Shape& shape, int) {
  return shape.ranks / 2;
}

}  // namespace

const Family algorithm::circulant{
    .name = "circulant",
    .supports = supports_any_of<Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter>,
    .build = build,
    .carried_by = carried_except<Collective::reduce_scatter>,
    .items = items,
    .classes = Classes::one};

}  // namespace tutti
