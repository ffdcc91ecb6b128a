// Inside groups of ranks that are near each other, and across these groups.
#include <algorithm>
#include <cassert>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/groups.h"

namespace tutti {
namespace {

/// An inner schedule, the outer ranks that play its ranks, and the meaning of its blocks.
struct Embedding {
  const Schedule* inner;    ///< if it reduces, its shape says what its inputs hold (Shape::inputs)
  std::vector<Rank> ranks;  ///< by inner rank
  /// The outer blocks, of that rank, that an inner block stands for. The source and destination of a transfer must give
  /// equally many blocks, of the same parts in the same order.
  std::function<std::vector<Ref>(Rank inner_rank, Ref inner)> blocks;
};

void place(Schedule& outer, const Embedding& embedding, const Transfer& t) {
  const Rank from = embedding.ranks[static_cast<std::size_t>(t.from)];
  const Rank to = embedding.ranks[static_cast<std::size_t>(t.to)];
  const std::vector<Ref> sources = embedding.blocks(t.from, t.src), destinations = embedding.blocks(t.to, t.dst);
  assert(sources.size() == destinations.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (t.kind == Kind::reduce)
      outer.reduce(from, sources[i], to, destinations[i], t.order, t.inputs);
    else if (from != to || sources[i] != destinations[i])
      outer.copy(from, sources[i], to, destinations[i]);
  }
}

/// A schedule about one rank keeps the transfers of no other.
bool concerns(const Schedule& outer, const Embedding& embedding) {
  return outer.only() == Shape::everybody || std::ranges::find(embedding.ranks, outer.only()) != embedding.ranks.end();
}

/// Adds all embeddings to `outer` from the present step on, all at the same time; afterwards `outer` is at its next
/// step. Operands of a reduction keep their order. Copies of a block to itself are left out: an input may be where the
/// output is, since schedules are right in place.
void embed(Schedule& outer, std::span<const Embedding> embeddings) {
  int steps = 0;
  for (const Embedding& embedding : embeddings) steps = std::max(steps, embedding.inner->steps());
  std::vector<const Embedding*> kept;
  for (const Embedding& embedding : embeddings)
    if (concerns(outer, embedding)) kept.push_back(&embedding);
  for (int step = 0; step < steps; ++step, outer.next_step())
    for (const Embedding* const embedding : kept) {
      const auto& transfers = embedding->inner->transfers();
      for (auto t = std::ranges::lower_bound(transfers, step, {}, &Transfer::step);
           t != transfers.end() && t->step == step; ++t)
        place(outer, *embedding, *t);
    }
}

/// The j-th members of all groups work across groups, for each j below the size of the smallest group.
int width_of(const Groups& groups) {
  return static_cast<int>(std::ranges::min(groups, {}, &std::vector<Rank>::size).size());
}

std::vector<Rank> across(const Groups& groups, int j) {
  std::vector<Rank> ranks;
  for (const std::vector<Rank>& group : groups) ranks.push_back(group[static_cast<std::size_t>(j)]);
  return ranks;
}

/// The blocks of all j-th members, one per group.
std::vector<Ref> blocks_across(const Groups& groups, Buffer buffer, int j) {
  std::vector<Ref> all;
  for (const Rank rank : across(groups, j)) all.push_back({buffer, rank});
  return all;
}

bool supports(const Shape& shape, int group_size) {
  if (!algorithm::circulant.supports(shape, 0)) return false;
  const Groups groups = near_groups(shape, group_size);
  return !groups.empty() && (shape.collective == Collective::all_reduce || are_alike(groups));
}

Schedule build(const Shape& shape, int group_size);
int items(const Shape& shape, int group_size);

/// The shape of the j-th members. The outer levels decide it; the innermost of these that still divides the groups is
/// the next level.
Shape shape_across(const Shape& shape, const Groups& groups, int group_size) {
  Shape next{.collective = shape.collective,
             .ranks = static_cast<int>(groups.size()),
             .only = find_member(groups, shape.only).group};
  for (const std::vector<Rank>& group : groups) {
    next.inputs.push_back(0);
    for (const Rank rank : group) next.inputs.back() += shape.inputs_of(rank);
  }
  if (group_size == 0)
    for (const Level& level : shape.levels) {
      next.levels.emplace_back();
      for (const Rank first : across(groups, 0)) next.levels.back().push_back(level[static_cast<std::size_t>(first)]);
    }
  return next;
}

/// Those of schedule_across in an all-reduce.
int parts_of(const Shape& next) {
  if (!supports(next, 0)) return next.ranks;
  const Groups groups = near_groups(next, 0);
  return width_of(groups) * parts_of(shape_across(next, groups, 0));
}

Schedule schedule_across(const Shape& next) {
  return supports(next, 0) ? build(next, 0) : algorithm::circulant.build(next, 0);
}

/// Of groups of one size: all with all, in one step.
Schedule schedule_inside(const Shape& shape, const Groups& groups) {
  Shape inside{
      .collective = shape.collective, .ranks = width_of(groups), .only = find_member(groups, shape.only).place};
  for (const Rank rank : groups[0]) inside.inputs.push_back(shape.inputs_of(rank));  // of all groups the same
  return algorithm::one_shot.build(inside, 0);
}

/// Reduce-scatter inside, all-reduce across, all-gather inside: part j of the vector belongs to the j-th members.
/// Members beyond the size of the smallest group have no part.
Schedule all_reduce(const Shape& shape, const Groups& groups, const Schedule& outer) {
  const int width = outer.parts(), parts = width_of(groups) * width;
  const auto owner = [&](const std::vector<Rank>& group, int chunk) {
    return group[static_cast<std::size_t>(chunk / width)];
  };
  Schedule schedule(shape, parts);
  Groups near = groups;
  if (const int own = find_member(groups, shape.only).group; own >= 0) near = {groups[static_cast<std::size_t>(own)]};
  for (const std::vector<Rank>& group : near)
    for (int chunk = 0; chunk < parts; ++chunk)
      for (const Rank from : group)
        schedule.reduce(from, {Buffer::input, chunk}, owner(group, chunk), {Buffer::output, chunk}, from,
                        shape.inputs_of(from));
  schedule.next_step();

  std::vector<Embedding> embeddings;
  for (int j = 0; j < width_of(groups); ++j)
    embeddings.push_back(
        {&outer, across(groups, j), [=](Rank, Ref ref) {
           const Buffer buffer = ref.buffer == Buffer::scratch ? Buffer::scratch : Buffer::output;
           return std::vector<Ref>{{buffer, ref.block / width * parts + j * width + ref.block % width}};
         }});
  embed(schedule, embeddings);

  for (const std::vector<Rank>& group : near)
    for (int chunk = 0; chunk < parts; ++chunk)
      for (const Rank to : group)
        if (to != owner(group, chunk))
          schedule.copy(owner(group, chunk), {Buffer::output, chunk}, to, {Buffer::output, chunk});
  if (std::ranges::any_of(groups, [](const auto& group) { return group.size() > 1; })) schedule.next_step();
  return schedule;
}

/// All-gather across, then inside: each member passes the blocks that it received on to its group.
Schedule all_gather(const Shape& shape, const Groups& groups, const Schedule& outer) {
  const int size = width_of(groups);
  const Schedule inner = schedule_inside(shape, groups);
  Schedule schedule(shape, /*parts=*/1);
  std::vector<Embedding> acrosses, insides;
  for (int j = 0; j < size; ++j)
    acrosses.push_back({&outer, across(groups, j), [ranks = across(groups, j)](Rank, Ref ref) {
                          if (ref.buffer == Buffer::output) ref.block = ranks[static_cast<std::size_t>(ref.block)];
                          return std::vector<Ref>{ref};
                        }});
  for (const std::vector<Rank>& group : groups)
    insides.push_back({&inner, group, [&groups](Rank j, Ref ref) {
                         return blocks_across(groups, Buffer::output, ref.buffer == Buffer::input ? j : ref.block);
                       }});
  embed(schedule, acrosses);
  embed(schedule, insides);
  return schedule;
}

/// Reduce-scatter inside: the j-th member sums up the blocks of all j-th members, in scratch. Then across.
Schedule reduce_scatter(const Shape& shape, const Groups& groups, const Schedule& outer) {
  const int size = width_of(groups), count = static_cast<int>(groups.size());
  const Schedule inner = schedule_inside(shape, groups);
  Schedule schedule(shape, /*parts=*/1);
  std::vector<Embedding> insides, acrosses;
  for (const std::vector<Rank>& group : groups)
    insides.push_back({&inner, group, [&groups, count](Rank, Ref ref) {
                         if (ref.buffer == Buffer::input) return blocks_across(groups, Buffer::input, ref.block);
                         std::vector<Ref> sums;
                         for (int k = 0; k < count; ++k) sums.push_back({Buffer::scratch, k});
                         return sums;
                       }});
  for (int j = 0; j < size; ++j)
    acrosses.push_back({&outer, across(groups, j), [count](Rank, Ref ref) {
                          if (ref.buffer == Buffer::scratch) ref.block += count;
                          if (ref.buffer == Buffer::input) ref.buffer = Buffer::scratch;
                          return std::vector<Ref>{ref};
                        }});
  embed(schedule, insides);
  embed(schedule, acrosses);
  return schedule;
}

/// Hierarchical: N groups of g ranks. Inside a group all ranks communicate with all others in one step. Across groups,
/// the j-th members of all groups work on a g-th of the data, by circulant, or in the same way by the next level. So
/// slow links between groups carry a g-th of the data that a flat algorithm may send over them.
///
///   all-reduce                    steps 2 + 2·ceil(log2 N)   sent per rank 2·bytes·(g-1)/g inside,
///                                                            2·bytes/g·(N-1)/N across
///   reduce-scatter, all-gather    steps 1 + ceil(log2 N)     bytes·(g-1)/g inside, bytes/g·(N-1)/N across
///   order of sums: rank order inside, then by group   scratch (reduce-scatter) N + N/2 blocks
///
/// At least two groups, all of one size; only an all-reduce by the machine's levels allows several sizes, and g is then
/// the smallest. Groups are those of the machine (group size 0), or runs of consecutive ranks of the given size.
/// Cho et al., "BlueConnect: decomposing all-reduce for deep learning on heterogeneous network hierarchy", MLSys 2019.
Schedule build(const Shape& shape, int group_size) {
  const Groups groups = near_groups(shape, group_size);
  const Schedule outer = schedule_across(shape_across(shape, groups, group_size));
  if (shape.collective == Collective::all_reduce) return all_reduce(shape, groups, outer);
  if (shape.collective == Collective::all_gather) return all_gather(shape, groups, outer);
  assert(shape.collective == Collective::reduce_scatter);
  return reduce_scatter(shape, groups, outer);
}

/// Inside, a message has what its receiver passes on across: a share of the vector, in as many parts as the schedule
/// across has, or a block of each group. Only the largest of those across may have more blocks.
int items(const Shape& shape, int group_size) {
  const Groups groups = near_groups(shape, group_size);
  const Shape next = shape_across(shape, groups, group_size);
  const bool is_nested = supports(next, 0);
  const int across = is_nested ? items(next, 0) : algorithm::circulant.items(next, 0);
  if (shape.collective != Collective::all_reduce) return std::max(next.ranks, across);
  return std::max(parts_of(next), across);
}

constexpr int group_sizes[] = {0, 8, 4, 2};

}  // namespace

const Family algorithm::hierarchical{.name = "hierarchical",
                                     .supports = supports,
                                     .build = build,
                                     .carried_by = carried_except<Collective::reduce_scatter>,
                                     .items = items,
                                     .classes = Classes::folded,
                                     .parameter = "group size",
                                     .values = group_sizes};

}  // namespace tutti
