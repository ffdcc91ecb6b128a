// Groups of ranks that are near each other.
#include "algorithms/groups.h"

#include <algorithm>
#include <cstddef>

#include "algorithms/visits.h"

namespace tutti {
namespace {

Groups of_level(const Level& level) {
  Groups groups(level.empty() ? 0 : static_cast<std::size_t>(std::ranges::max(level)) + 1);
  for (auto& group : groups) group.reserve(level.size() / groups.size() + 1);
  for (Rank rank = 0; rank < static_cast<Rank>(level.size()); ++rank)
    groups[static_cast<std::size_t>(level[static_cast<std::size_t>(rank)])].push_back(rank);
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  const bool alone = std::ranges::all_of(groups, [](const auto& group) { return group.size() == 1; });
  return groups.size() < 2 || alone ? Groups{} : groups;
}

}  // namespace

Groups near_groups(const Shape& shape, int size) {
  if (size == 0) {
    for (const Level& level : Reversed(shape.levels))
      if (Groups groups = of_level(level); !groups.empty()) return groups;
    return {};
  }
  if (shape.ranks % size != 0) return {};
  Level level;
  for (Rank rank = 0; rank < shape.ranks; ++rank) level.push_back(rank / size);
  return of_level(level);
}

bool are_alike(const Groups& groups) {
  return std::ranges::all_of(groups, [&](const auto& group) { return group.size() == groups[0].size(); });
}

Member find_member(const Groups& groups, Rank rank) {
  if (rank == Shape::everybody) return {};
  for (std::size_t group = 0; group < groups.size(); ++group)
    if (const auto found = std::ranges::find(groups[group], rank); found != groups[group].end())
      return {.group = static_cast<int>(group), .place = static_cast<int>(found - groups[group].begin())};
  return {};
}

}  // namespace tutti
