#include "analysis/proof/check_entries.h"

#include <fmt/format.h>

namespace tutti::proof {

Entries::Entries(int ranks, int channels, int calls)
    : ranks_(ranks),
      channels_(channels),
      began_(pair(calls, 0) * channels),
      lines_(pair(calls, 0), Clocks::none),
      published_(static_cast<std::size_t>(calls)),
      opened_(pair(ranks, 0)) {}

void Entries::publish(const Channel& l, Clocks& clocks) {
  Clocks::Row& line = lines_[pair(l.call, l.rank)];
  line = clocks.take();
  clocks.copy(line, l.now);
  clocks.tick(l.now, l.rank);
  ++published_[static_cast<std::size_t>(l.call)];
}

bool Entries::enter(Channel& l, Clocks& clocks) const {
  if (l.entered) return true;
  if (published_[static_cast<std::size_t>(l.call)] < ranks_) return false;
  for (Rank peer = 0; peer < ranks_; ++peer) clocks.join(l.now, lines_[pair(l.call, peer)]);
  return l.entered = true;
}

bool Entries::open(const Channel& l, Rank peer, Clocks& clocks) {
  const Clocks::Row line = lines_[pair(l.call, peer)];
  if (line == Clocks::none) return false;
  clocks.join(l.now, line);
  opened_[pair(l.rank, peer)] = l.call + 1;
  return true;
}

Result<void> Entries::all_known(const Channel& l, const Clocks& clocks) {
  for (Rank peer = 0; peer < ranks_; ++peer)
    if (clocks.at(l.now)[peer] < began(l.call, peer, l.channel))
      return l.wrong(fmt::format("leaves the barrier before rank {} is known to have entered", peer));
  return {};
}

}  // namespace tutti::proof
