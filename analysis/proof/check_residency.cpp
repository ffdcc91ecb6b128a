// The number of channels that have to be resident at once.
#include "analysis/proof/check_residency.h"

#include <algorithm>

namespace tutti::proof {

int blocked_max(const Waits& waits, int ranks) {
  std::vector<std::vector<Rank>> held_up_by;  // by rank: the rank itself and the ranks it waits for
  for (Rank rank = 0; rank < ranks; ++rank) {
    held_up_by.emplace_back();
    for (Rank peer = 0; peer < ranks; ++peer)
      if (peer == rank || waits[static_cast<std::size_t>(rank) * ranks + peer] != 0) held_up_by.back().push_back(peer);
  }
  std::ranges::stable_sort(held_up_by, {}, [](const std::vector<Rank>& all) { return all.size(); });

  int apart = 0;
  std::vector<char> taken(static_cast<std::size_t>(ranks));
  for (const std::vector<Rank>& all : held_up_by) {
    const auto is_taken = [&taken](Rank rank) { return taken[static_cast<std::size_t>(rank)] != 0; };
    if (std::ranges::any_of(all, is_taken)) continue;
    for (const Rank rank : all) taken[static_cast<std::size_t>(rank)] = 1;
    ++apart;
  }
  return ranks - apart;
}

}  // namespace tutti::proof
