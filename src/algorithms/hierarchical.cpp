// Inside groups of ranks that are near each other, and across them.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/embed.h"

namespace tutti {
namespace {

/// The j-th members of all groups work together across, for each j below the size of the smallest group.
class Groups {
 public:
  explicit Groups(std::vector<std::vector<Rank>> members) : members_(std::move(members)) {}

  int count() const { return static_cast<int>(members_.size()); }
  int size() const { return static_cast<int>(std::ranges::min(members_, {}, &std::vector<Rank>::size).size()); }
  const std::vector<Rank>& inside(int k) const { return members_[static_cast<std::size_t>(k)]; }
  Rank rank(int k, int j) const { return inside(k)[static_cast<std::size_t>(j)]; }

  std::vector<Rank> across(int j) const {
    std::vector<Rank> ranks;
    for (int k = 0; k < count(); ++k) ranks.push_back(rank(k, j));
    return ranks;
  }

  /// Blocks of all j-th members, one for each group.
  std::vector<Ref> blocks(Buffer buffer, int j) const {
    std::vector<Ref> all;
    for (const Rank rank : across(j)) all.push_back({buffer, rank});
    return all;
  }

 private:
  std::vector<std::vector<Rank>> members_;
};

/// None where it would be all in one group or each by itself, or groups differ in size and may not.
std::vector<std::vector<Rank>> members_of(const Level& level, bool any_size) {
  std::vector<std::vector<Rank>> members(level.empty() ? 0 : static_cast<std::size_t>(std::ranges::max(level)) + 1);
  for (Rank rank = 0; rank < static_cast<Rank>(level.size()); ++rank)
    members[static_cast<std::size_t>(level[static_cast<std::size_t>(rank)])].push_back(rank);
  std::erase_if(members, [](const std::vector<Rank>& group) { return group.empty(); });
  const auto differs = [&](const std::vector<Rank>& group) { return group.size() != members[0].size(); };
  if (members.size() < 2 || members.size() == level.size()) return {};
  if (!any_size && std::ranges::any_of(members, differs)) return {};
  return members;
}

/// By the innermost level that says something, of the levels [0, levels) that are still left.
std::vector<std::vector<Rank>> innermost(const Shape& shape, std::size_t& levels) {
  while (levels > 0)
    if (auto members = members_of(shape.levels[--levels], shape.collective == Collective::all_reduce); !members.empty())
      return members;
  return {};
}

std::vector<std::vector<Rank>> members_of(const Shape& shape, int group_size) {
  std::size_t levels = shape.levels.size();
  if (group_size == 0) return innermost(shape, levels);
  Level level;
  for (Rank rank = 0; rank < shape.ranks; ++rank) level.push_back(rank / group_size);
  return members_of(level, /*any_size=*/false);
}

bool supports(const Shape& shape, int group_size) {
  return (shape.collective == Collective::all_reduce || shape.collective == Collective::all_gather ||
          shape.collective == Collective::reduce_scatter) &&
         !members_of(shape, group_size).empty();
}

Schedule build(const Shape& shape, int group_size);

/// What the j-th members do: by the levels further out, where these do not part the members of a group.
Schedule schedule_across(const Shape& shape, const Groups& groups, int group_size) {
  Shape across{.collective = shape.collective, .ranks = groups.count()};
  std::size_t left = shape.levels.size();
  if (group_size == 0) innermost(shape, left);
  for (std::size_t i = 0; group_size == 0 && i < left; ++i) {
    Level level;
    for (int k = 0; k < groups.count(); ++k)
      level.push_back(shape.levels[i][static_cast<std::size_t>(groups.rank(k, 0))]);
    across.levels.push_back(std::move(level));
  }
  return supports(across, 0) ? build(across, 0) : member(algorithm::circulant).build(across);
}

/// Reduce-scatter inside, all-reduce across, all-gather inside: part j of the vector is the j-th members'. Members
/// beyond the size of the smallest group have no part of their own.
Schedule all_reduce(const Shape& shape, const Groups& groups, const Schedule& across) {
  const int width = across.parts(), parts = groups.size() * width;
  Schedule schedule(shape, parts);
  for (int k = 0; k < groups.count(); ++k)
    for (int chunk = 0; chunk < parts; ++chunk)
      for (const Rank from : groups.inside(k))
        schedule.reduce(from, {Buffer::input, chunk}, groups.rank(k, chunk / width), {Buffer::output, chunk}, from);
  schedule.next_step();

  std::vector<Embedding> acrosses;
  for (int j = 0; j < groups.size(); ++j)
    acrosses.push_back({&across, groups.across(j), [=](Rank, Ref ref) {
                          const Buffer buffer = ref.buffer == Buffer::scratch ? Buffer::scratch : Buffer::output;
                          return std::vector<Ref>{{buffer, ref.block / width * parts + j * width + ref.block % width}};
                        }});
  embed(schedule, acrosses);

  for (int k = 0; k < groups.count(); ++k)
    for (int chunk = 0; chunk < parts; ++chunk)
      for (const Rank to : groups.inside(k))
        if (const Rank owner = groups.rank(k, chunk / width); to != owner)
          schedule.copy(owner, {Buffer::output, chunk}, to, {Buffer::output, chunk});
  return schedule;
}

/// All-gather across, then inside: each member hands on what it got for all.
Schedule all_gather(const Shape& shape, const Groups& groups, const Schedule& across) {
  const Schedule inside = member(algorithm::one_shot).build({.collective = shape.collective, .ranks = groups.size()});
  Schedule schedule(shape, /*parts=*/1);
  std::vector<Embedding> insides, acrosses;
  for (int j = 0; j < groups.size(); ++j)
    acrosses.push_back({&across, groups.across(j), [&groups, j](Rank, Ref ref) {
                          if (ref.buffer == Buffer::output) ref.block = groups.rank(ref.block, j);
                          return std::vector<Ref>{ref};
                        }});
  for (int k = 0; k < groups.count(); ++k)
    insides.push_back({&inside, groups.inside(k), [&groups](Rank j, Ref ref) {
                         return groups.blocks(Buffer::output, ref.buffer == Buffer::input ? j : ref.block);
                       }});
  embed(schedule, acrosses);
  embed(schedule, insides);
  return schedule;
}

/// Reduce-scatter inside: the j-th member sums up the blocks of all j-th members, in scratch. Then across.
Schedule reduce_scatter(const Shape& shape, const Groups& groups, const Schedule& across) {
  const Schedule inside = member(algorithm::one_shot).build({.collective = shape.collective, .ranks = groups.size()});
  Schedule schedule(shape, /*parts=*/1);
  std::vector<Embedding> insides, acrosses;
  for (int k = 0; k < groups.count(); ++k)
    insides.push_back({&inside, groups.inside(k), [&groups](Rank, Ref ref) {
                         if (ref.buffer == Buffer::input) return groups.blocks(Buffer::input, ref.block);
                         std::vector<Ref> sums;
                         for (int i = 0; i < groups.count(); ++i) sums.push_back({Buffer::scratch, i});
                         return sums;
                       }});
  for (int j = 0; j < groups.size(); ++j)
    acrosses.push_back({&across, groups.across(j), [&groups](Rank, Ref ref) {
                          if (ref.buffer == Buffer::scratch) ref.block += groups.count();
                          if (ref.buffer == Buffer::input) ref.buffer = Buffer::scratch;
                          return std::vector<Ref>{ref};
                        }});
  embed(schedule, insides);
  embed(schedule, acrosses);
  return schedule;
}

/// Hierarchical: N groups of g ranks. Inside a group everyone reaches everyone in one step; across, the j-th members of
/// all groups work on a g-th of the data, by circulant, or by the next level in the same way. So slow links between
/// groups carry a g-th of what a flat algorithm may send over them.
///
///   all-reduce                    steps 2 + 2·ceil(log2 N)   sent per rank 2·bytes·(g-1)/g inside,
///                                                            2·bytes/g·(N-1)/N across
///   reduce-scatter, all-gather    steps 1 + ceil(log2 N)     bytes·(g-1)/g inside, bytes/g·(N-1)/N across
///   order of sums: rank order inside, then by group   scratch (reduce-scatter) N + N/2 blocks
///
/// At least two groups; all of one size, but for an all-reduce by the machine's levels: then g is that of the smallest.
/// Groups are those of the machine (group size 0), or runs of so many ranks.
/// Cho et al., "BlueConnect: decomposing all-reduce for deep learning on heterogeneous network hierarchy", MLSys 2019.
Schedule build(const Shape& shape, int group_size) {
  const Groups groups(members_of(shape, group_size));
  const Schedule across = schedule_across(shape, groups, group_size);
  switch (shape.collective) {
    case Collective::all_reduce: return all_reduce(shape, groups, across);
    case Collective::all_gather: return all_gather(shape, groups, across);
    default: return reduce_scatter(shape, groups, across);
  }
}

/// A reduce-scatter's sums are in scratch when others want them.
bool carried_by(Collective collective, Reach reach) {
  return reach != Reach::line && collective != Collective::reduce_scatter;
}

constexpr int group_sizes[] = {0, 8, 4, 2};

}  // namespace

const Family algorithm::hierarchical{.name = "hierarchical",
                                     .supports = supports,
                                     .build = build,
                                     .carried_by = carried_by,
                                     .parameter = "group size",
                                     .values = group_sizes};

}  // namespace tutti
