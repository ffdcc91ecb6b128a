// Inside groups of ranks that are near each other, and across them.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/embed.h"

namespace tutti {
namespace {

/// Groups of equal size; the j-th members of all groups work together across.
class Groups {
 public:
  explicit Groups(std::vector<std::vector<Rank>> members) : members_(std::move(members)) {}

  int count() const { return static_cast<int>(members_.size()); }
  int size() const { return static_cast<int>(members_[0].size()); }
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

/// None where groups differ in size, or where it would be all in one or each by itself.
std::vector<std::vector<Rank>> members_of(const Level& level) {
  std::vector<std::vector<Rank>> members(level.empty() ? 0 : static_cast<std::size_t>(std::ranges::max(level)) + 1);
  for (Rank rank = 0; rank < static_cast<Rank>(level.size()); ++rank)
    members[static_cast<std::size_t>(level[static_cast<std::size_t>(rank)])].push_back(rank);
  std::erase_if(members, [](const std::vector<Rank>& group) { return group.empty(); });
  const auto differs = [&](const std::vector<Rank>& group) { return group.size() != members[0].size(); };
  if (members.size() < 2 || members[0].size() < 2 || std::ranges::any_of(members, differs)) return {};
  return members;
}

/// By the innermost level that groups ranks alike, of the levels [0, levels) that are still left.
std::vector<std::vector<Rank>> innermost(const Shape& shape, std::size_t& levels) {
  while (levels > 0)
    if (auto members = members_of(shape.levels[--levels]); !members.empty()) return members;
  return {};
}

std::vector<std::vector<Rank>> members_of(const Shape& shape, int group_size) {
  std::size_t levels = shape.levels.size();
  if (group_size == 0) return innermost(shape, levels);
  if (shape.ranks % group_size != 0) return {};
  Level level;
  for (Rank rank = 0; rank < shape.ranks; ++rank) level.push_back(rank / group_size);
  return members_of(level);
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

/// Reduce-scatter inside, all-reduce across, all-gather inside: part j of the vector is the j-th members'.
Schedule all_reduce(const Shape& shape, const Groups& groups, const Schedule& across) {
  const Schedule inside =
      member(algorithm::two_shot).build({.collective = Collective::all_reduce, .ranks = groups.size()});
  const int width = across.parts(), parts = groups.size() * width;
  Schedule schedule(shape, parts);

  std::vector<Embedding> insides, acrosses;
  for (int k = 0; k < groups.count(); ++k)
    insides.push_back({&inside, groups.inside(k), [width](Rank, Ref ref) {
                         std::vector<Ref> blocks;
                         for (int i = 0; i < width; ++i) blocks.push_back({ref.buffer, ref.block * width + i});
                         return blocks;
                       }});
  for (int j = 0; j < groups.size(); ++j)
    acrosses.push_back({&across, groups.across(j), [=](Rank, Ref ref) {
                          const Buffer buffer = ref.buffer == Buffer::scratch ? Buffer::scratch : Buffer::output;
                          return std::vector<Ref>{{buffer, ref.block / width * parts + j * width + ref.block % width}};
                        }});
  embed(schedule, insides, 0, 1);
  embed(schedule, acrosses);
  embed(schedule, insides, 1, 2);
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
///   groups of one size, at least two of at least two   order of sums: rank order inside, then by group
///   scratch (reduce-scatter) N + N/2 blocks
///
/// Groups are those of the machine (group size 0), or the runs of so many ranks.
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
