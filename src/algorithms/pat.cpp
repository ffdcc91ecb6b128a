// One tree per rank's block, all of the same form; a message carries the blocks of as many trees as fit.
#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

int lowest_bit(int x) {
  return x & -x;
}

/// A block reaches the rank `offset` ahead of its owner by hops that are the bits of `offset`, the lowest bit last. So
/// `offset` names a node of every tree and also, from a rank's point of view, the owner of the block that it holds
/// there.
class Trees {
 public:
  Trees(int ranks, int aggregation) : n_(ranks) {
    while ((n_ + stride_ - 1) / stride_ > aggregation) stride_ *= 2;
  }

  /// The offsets that are reached in each step of an all-gather, each by a hop of its lowest bit. First the multiples
  /// of the stride, from far to near, an increasing number of them; then, for each offset between them, the multiples
  /// shifted by that offset.
  std::vector<std::vector<int>> steps() const {
    std::vector<std::vector<int>> steps;
    for (int distance = static_cast<int>(std::bit_floor(static_cast<unsigned>(n_ - 1))); distance >= stride_;
         distance /= 2)
      steps.push_back(offsets(distance, 2 * distance));
    for (int low = 1; low < stride_; ++low) steps.push_back(offsets(low, stride_));
    return steps;
  }

  /// Where the sum of the block of `offset` is kept in scratch, offset > 0. Of the nodes between two multiples of the
  /// stride, only those above the current one are in use, so one place per depth is enough.
  int scratch(int offset) const {
    const int multiple = offset / stride_, low = offset % stride_;
    const int multiples = (n_ + stride_ - 1) / stride_;
    return std::popcount(static_cast<unsigned>(low)) * multiples + multiple - 1;
  }

 private:
  std::vector<int> offsets(int first, int step) const {
    std::vector<int> all;
    for (int offset = first; offset < n_; offset += step) all.push_back(offset);
    return all;
  }

  int n_;
  int stride_ = 1;
};

Schedule all_gather(const Shape& shape, const Trees& trees) {
  const int n = shape.ranks;
  Schedule schedule = with_own_blocks(shape);
  for (const std::vector<int>& offsets : trees.steps()) {
    for (const int offset : offsets) {
      const int hop = lowest_bit(offset);
      for_each_sender_ahead(
          shape, hop, [&](Rank from) { pass_on(schedule, (from + hop - offset + n) % n, from, (from + hop) % n); });
    }
    schedule.next_step();
  }
  return schedule;
}

/// The same trees backwards, from the leaves to the owner.
Schedule reduce_scatter(const Shape& shape, const Trees& trees) {
  const int n = shape.ranks;
  const std::vector<std::vector<int>> steps = trees.steps();
  Schedule schedule(shape, /*parts=*/1);
  std::vector<int> inputs(static_cast<std::size_t>(n), 1);  // by offset, of which a sum is, if of more than one
  const auto sum = [&](int offset) {
    return offset == 0 ? Ref{Buffer::output, 0} : Ref{Buffer::scratch, trees.scratch(offset)};
  };
  const auto held = [&](int offset, Rank block) {
    return inputs[static_cast<std::size_t>(offset)] > 1 ? sum(offset) : Ref{Buffer::input, block};
  };
  for (auto offsets = steps.rbegin(); offsets != steps.rend(); ++offsets, schedule.next_step()) {
    for (const int offset : *offsets) {
      const int hop = lowest_bit(offset), above = offset - hop;
      for_each_sender_ahead(shape, n - hop, [&](Rank from) {
        const Rank to = (from - hop + n) % n, block = (from - offset + n) % n;
        schedule.reduce(to, held(above, block), to, sum(above), to);
        schedule.reduce(from, held(offset, block), to, sum(above), from, inputs[static_cast<std::size_t>(offset)]);
      });
    }
    for (const int offset : *offsets)
      inputs[static_cast<std::size_t>(offset - lowest_bit(offset))] += inputs[static_cast<std::size_t>(offset)];
  }
  return schedule;
}

/// PAT (parallel aggregated trees): every block has a binomial tree that starts at its owner and takes long hops first,
/// so that few blocks travel far. Let a = aggregation, the number of blocks that a message may carry. First a
/// logarithmic phase among a ranks at distance s, the least power of two ≥ n/a. Then, one after another, the s - 1
/// nodes that each of them has before the next one, a blocks at a time.
///
///   steps ceil(log2(n/s)) + s - 1: ceil(log2 n) where n ≤ a   sent per rank bytes·(n-1)/n   any n ≥ 2
///   scratch (reduce-scatter) at most a·(1 + log2 s) blocks   order of sums: by rank in each addition
///
/// Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale", 2025.
Schedule build(const Shape& shape, int aggregation) {
  const Trees trees(shape.ranks, aggregation);
  return shape.collective == Collective::all_gather ? all_gather(shape, trees) : reduce_scatter(shape, trees);
}

int items(const Shape& shape, int aggregation) {
  int most = 0;
  for (const std::vector<int>& offsets : Trees(shape.ranks, aggregation).steps()) {
    std::map<int, int> of_hop;
    for (const int offset : offsets) most = std::max(most, ++of_hop[lowest_bit(offset)]);
  }
  return most;
}

constexpr int aggregations[] = {8, 2, 32};

}  // namespace

const Family algorithm::pat{.name = "pat",
                            .supports = supports_any_of<Collective::all_gather, Collective::reduce_scatter>,
                            .build = build,
                            .carried_by = carried_except<Collective::reduce_scatter>,
                            .items = items,
                            .classes = Classes::one,
                            .parameter = "aggregation",
                            .values = aggregations};

}  // namespace tutti
