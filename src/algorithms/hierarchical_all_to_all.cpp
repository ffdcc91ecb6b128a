// Fewer and longer messages between groups of near ranks.
#include <algorithm>
#include <cstddef>

#include "algorithms/algorithm.h"
#include "algorithms/groups.h"
#include "algorithms/visits.h"

namespace tutti {
namespace {

bool supports(const Shape& shape, int group_size) {
  if (shape.collective != Collective::all_to_all) return false;
  const Groups groups = near_groups(shape, group_size);
  return !groups.empty() && are_alike(groups);
}

/// Hierarchical all-to-all: inside its group, each rank passes the j-th member all data for j-th members. Then the j-th
/// members of all groups exchange the data of their groups, one partner at a time.
///
///   steps groups   between groups: groups-1 messages per rank, each of as many blocks as a group has ranks
///   sent per rank: inside bytes·(size-1)/size, across bytes·(groups-1)/groups
///   groups of equal size   scratch (size-1)·(groups-1) blocks
///
/// Träff and Rougier, "MPI collectives and datatypes for hierarchical all-to-all communication", EuroMPI/ASIA 2014.
Schedule build(const Shape& shape, int group_size) {
  const Groups groups = near_groups(shape, group_size);
  const int count = static_cast<int>(groups.size()), size = static_cast<int>(groups[0].size());
  const auto rank = [&](int k, int j) { return groups[static_cast<std::size_t>(k)][static_cast<std::size_t>(j)]; };
  // The place at member `to` of group k of the data that member `from` of the group sends to member `to` of group h.
  const auto held = [&](int from, int to, int k, int h) {
    if (from == to) return Ref{Buffer::input, rank(h, to)};
    const int member = (from - to + size) % size - 1, group = (h - k + count) % count - 1;
    return Ref{Buffer::scratch, member * (count - 1) + group};
  };

  Schedule schedule(shape, /*parts=*/1);
  const Shape of_groups{.ranks = count, .only = find_member(groups, shape.only).group};
  for_each_rank(of_groups, [&](int k) {
    for (int from = 0; from < size; ++from)
      for (int to = 0; to < size; ++to)
        for (int h = 0; h < count && schedule.keeps(rank(k, from), rank(k, to)); ++h) {
          const Ref src{Buffer::input, rank(h, to)};
          if (h == k)
            schedule.copy(rank(k, from), src, rank(k, to), {Buffer::output, rank(k, from)});
          else if (from != to)
            schedule.copy(rank(k, from), src, rank(k, to), held(from, to, k, h));
        }
  });
  schedule.next_step();
  for (int step = 1; step < count; ++step, schedule.next_step())
    for_each_sender_ahead(of_groups, step, [&](int k) {
      const int h = (k + step) % count;
      for (int to = 0; to < size; ++to)
        for (int from = 0; from < size && schedule.keeps(rank(k, to), rank(h, to)); ++from)
          schedule.copy(rank(k, to), held(from, to, k, h), rank(h, to), {Buffer::output, rank(k, from)});
    });
  return schedule;
}

/// Mapped memory can be stored to; with CMA, data that waits in scratch could not be read from there.
bool carried_by(Collective, Access access) {
  return access == Access::mapped;
}

/// Inside, the blocks of a member for all groups; across, those of all members of a group.
int items(const Shape& shape, int group_size) {
  const Groups groups = near_groups(shape, group_size);
  return static_cast<int>(std::max(groups.size(), groups[0].size()));
}

constexpr int group_sizes[] = {0, 4, 2, 8};

}  // namespace

/// Group size 0: groups are those of the shape's levels.
const Family algorithm::hierarchical_all_to_all{.name = "hierarchical_all_to_all",
                                                .supports = supports,
                                                .build = build,
                                                .carried_by = carried_by,
                                                .items = items,
                                                .classes = Classes::folded,
                                                .parameter = "group_size",
                                                .values = group_sizes};

}  // namespace tutti
