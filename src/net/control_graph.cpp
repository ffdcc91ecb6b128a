#include "net/control_graph.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace tutti {
namespace {

/// Of other hosts.
std::vector<int> neighbours_by_distance(int rank, const std::vector<int>& hosts) {
  const int ranks = static_cast<int>(hosts.size());
  std::vector<int> all;
  for (int distance = 1; distance < ranks; distance *= 2)
    for (const int other : {(rank + distance) % ranks, (rank + ranks - distance) % ranks})
      if (hosts[static_cast<std::size_t>(other)] != hosts[static_cast<std::size_t>(rank)]) all.push_back(other);
  return all;
}

/// For each rank that has no neighbour by distance: itself, and the next rank of another host, in order of ranks.
std::vector<std::pair<int, int>> links_of_the_linkless(const std::vector<int>& hosts) {
  constexpr int links_max = 64;  // of one rank
  std::vector<std::pair<int, int>> all;
  if (std::ranges::adjacent_find(hosts, std::not_equal_to()) == hosts.end()) return all;  // one host
  std::vector<int> links(hosts.size());
  const int ranks = static_cast<int>(hosts.size());
  for (int rank = 0; rank < ranks; ++rank) {
    if (!neighbours_by_distance(rank, hosts).empty()) continue;
    int other = rank;
    while (hosts[static_cast<std::size_t>(other)] == hosts[static_cast<std::size_t>(rank)]) other = (other + 1) % ranks;
    if (links[static_cast<std::size_t>(other)]++ < links_max) all.emplace_back(rank, other);
  }
  return all;
}

}  // namespace

std::vector<int> control_neighbours(int rank, const std::vector<int>& hosts) {
  std::vector<int> all = neighbours_by_distance(rank, hosts);
  for (const auto& [one, other] : links_of_the_linkless(hosts)) {
    if (one == rank) all.push_back(other);
    if (other == rank) all.push_back(one);
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace tutti
