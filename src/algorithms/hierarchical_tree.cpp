// Across groups of near ranks once, then inside them.
#include <algorithm>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/groups.h"
#include "algorithms/spread.h"

namespace tutti {
namespace {

bool supports(const Shape& shape, int group_size) {
  return (shape.collective == Collective::broadcast || shape.collective == Collective::reduce) &&
         !near_groups(shape, group_size).empty();
}

/// Puts the root's group first, and in each group its representative: the root in the root's group, in the others the
/// rank with the root's place.
Groups from_root(Groups groups, Rank root) {
  const auto [first, place] = find_member(groups, root);
  std::rotate(groups.begin(), groups.begin() + first, groups.end());
  for (auto& group : groups) std::rotate(group.begin(), group.begin() + place % std::ssize(group), group.end());
  return groups;
}

/// The ranks of `tree` that have the data, the first `have`, pass it to as many others.
void double_up(Spread& spread, const std::vector<int>& tree, int have) {
  const auto from = static_cast<std::size_t>(have);
  for (std::size_t i = 0; i < from && i + from < tree.size(); ++i) spread.hop(tree[i], tree[i + from], 0);
}

/// Hierarchical broadcast: down a binomial tree over one rank of each group, then, in all groups at once, down a tree
/// over the group's ranks. A reduce runs the same steps backwards.
///
///   steps ceil(log2 groups) + ceil(log2 of the largest group)   each group is sent the data once
///   any groups, any root   order of sums: by rank in each addition
///
/// Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel computer networks to
/// optimize collective operation performance", IPDPS 2000.
Schedule build(const Shape& shape, int group_size) {
  const Groups groups = from_root(near_groups(shape, group_size), shape.root);
  std::vector<Rank> ranks;
  std::vector<int> leaders;
  std::vector<std::vector<int>> insides;
  std::size_t largest = 0;
  for (const auto& group : groups) {
    leaders.push_back(static_cast<int>(ranks.size()));
    insides.emplace_back();
    for (const Rank rank : group) {
      insides.back().push_back(static_cast<int>(ranks.size()));
      ranks.push_back(rank);
    }
    largest = std::max(largest, group.size());
  }

  Spread spread(shape.ranks, /*chunks=*/1);
  for (int have = 1; have < static_cast<int>(groups.size()); have *= 2, spread.next_step())
    double_up(spread, leaders, have);
  for (int have = 1; have < static_cast<int>(largest); have *= 2, spread.next_step())
    for (const auto& inside : insides) double_up(spread, inside, have);
  return spread.schedule(shape, ranks);
}

constexpr int group_sizes[] = {0, 4, 2, 8};

}  // namespace

/// Group size 0: groups are those of the shape's levels.
const Family algorithm::hierarchical_tree{.name = "hierarchical_tree",
                                          .supports = supports,
                                          .build = build,
                                          .carried_by = only_carried<Collective::broadcast>,
                                          .items = one_item,
                                          .parameter = "group_size",
                                          .values = group_sizes};

}  // namespace tutti
