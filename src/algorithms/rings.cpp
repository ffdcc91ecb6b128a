// The common part of all rings: data travels from neighbour to neighbour, in one or several orders of the ranks at
// once.
#include "algorithms/rings.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "algorithms/visits.h"

namespace tutti {
namespace {

/// One of several rings. Positions are counted along the ring, cyclically.
class Ring {
 public:
  /// `only`: as in Shape.
  Ring(const RingOrder& order, int index, int rings, Rank only) : order_(order), index_(index), rings_(rings) {
    positions_.ranks = size();
    if (only != Shape::everybody) positions_.only = static_cast<int>(std::ranges::find(order, only) - order.begin());
  }

  int size() const { return static_cast<int>(order_.size()); }
  int wrap(int i) const { return (i % size() + size()) % size(); }
  Rank rank(int position) const { return order_[static_cast<std::size_t>(wrap(position))]; }
  /// Calls `visit` with each position that may send to the next one.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for_each_sender_ahead(positions_, 1, visit);
  }
  /// The i-th of the ring's chunks; the vector is divided into n chunks per ring.
  int chunk(int i) const { return index_ * size() + wrap(i); }
  /// The ring's part of a group.
  Ref part(Buffer buffer, int group) const { return {buffer, group * rings_ + index_}; }

 private:
  const RingOrder& order_;
  int index_;
  int rings_;
  Shape positions_;
};

/// Each chunk travels around the ring once to be summed up, and once more to be distributed.
void all_reduce(Schedule& schedule, const Ring& ring, int step) {
  const int n = ring.size();
  ring.for_each([&](int i) {
    if (step < n - 1)
      schedule.reduce(ring.rank(i), ring.rank(i + 1), ring.chunk(i - step), step + 1);
    else
      schedule.copy(ring.rank(i), ring.rank(i + 1), ring.chunk(i + 1 - (step - (n - 1))));
  });
}

/// The sum of a rank's block starts behind the rank and arrives at it. On its way it is in scratch.
void reduce_scatter(Schedule& schedule, const Ring& ring, int step) {
  ring.for_each([&](int i) {
    const Rank rank = ring.rank(i), next = ring.rank(i + 1), block = ring.rank(i - 1 - step);
    const Ref sum = next == block ? ring.part(Buffer::output, 0) : ring.part(Buffer::scratch, step % 2);
    schedule.reduce(rank, step == 0 ? ring.part(Buffer::input, block) : ring.part(Buffer::scratch, (step - 1) % 2),
                    next, sum, 0, step + 1);
    schedule.reduce(next, ring.part(Buffer::input, block), next, sum, 1);
  });
}

void all_gather(Schedule& schedule, const Ring& ring, int step) {
  ring.for_each([&](int i) {
    const Rank rank = ring.rank(i), group = ring.rank(i - step);
    if (step == 0) schedule.copy(rank, ring.part(Buffer::input, 0), rank, ring.part(Buffer::output, rank));
    schedule.copy(rank, step == 0 ? ring.part(Buffer::input, 0) : ring.part(Buffer::output, group), ring.rank(i + 1),
                  ring.part(Buffer::output, group));
  });
}

}  // namespace

RingOrder ring_order(int ranks, int stride) {
  assert(std::gcd(ranks, stride) == 1);
  RingOrder order;
  for (int i = 0; i < ranks; ++i) order.push_back(static_cast<Rank>(static_cast<long long>(i) * stride % ranks));
  return order;
}

Schedule along_rings(const Shape& shape, std::span<const RingOrder> rings) {
  const int n = shape.ranks;
  const int count = static_cast<int>(rings.size());
  const bool reduces_all = shape.collective == Collective::all_reduce;
  const auto travel = reduces_all                                      ? all_reduce
                      : shape.collective == Collective::reduce_scatter ? reduce_scatter
                                                                       : all_gather;
  std::vector<Ring> all;
  for (int i = 0; i < count; ++i) all.emplace_back(rings[static_cast<std::size_t>(i)], i, count, shape.only);
  Schedule schedule(shape, reduces_all ? n * count : count);
  const int round = n - 1;
  for (int step = 0; step < (reduces_all ? 2 : 1) * round; ++step, schedule.next_step()) {
    for (const Ring& ring : all) travel(schedule, ring, step);
    // Once around, all steps but the first and the last are equal.
    constexpr int kept = 4;
    if (!schedule.is_observed() || step % round != kept - 1 || round <= kept + 1) continue;
    schedule.repeat(round - kept - 1);
    step += round - kept - 1;
  }
  return schedule;
}

}  // namespace tutti
