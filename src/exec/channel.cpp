#include "exec/channel.h"

#include <utility>

namespace tutti {

void Channel::reserve(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  senders.resize(n);
  receivers.resize(n);
  connections.resize(n);
  signals.resize(n);
  open.resize(n);
  unsent.reserve(n);
  undrained.reserve(n);
  inviting.peers.reserve(n);
}

Result<bool> Channel::flush() {
  bool moved = false;
  for (std::size_t i = 0; i < unsent.size();) {
    const std::uint16_t peer = unsent[i];
    auto gone = senders[peer]->flush();
    if (!gone) return std::move(gone).error().at_peer(peer);
    if (*gone && open[peer].filling.data() == nullptr) {
      moved = true;
      unsent[i] = unsent.back();
      unsent.pop_back();
    } else {
      ++i;
    }
  }
  return moved;
}

Result<bool> Channel::drain() {
  const std::size_t before = undrained.size();
  for (std::size_t i = before; i-- > 0;) {
    const std::uint16_t peer = undrained[i];
    auto drained = receivers[peer]->drained();
    if (!drained) return std::move(drained).error().at_peer(peer);
    if (*drained) undrained.erase(undrained.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return undrained.size() < before;
}

Result<void> Channel::find_offered(std::uint16_t peer, std::size_t items, std::size_t stride) {
  Offers* const offers = receivers[peer]->offers();
  if (offers == nullptr) return {};
  auto& offered = open[peer].offered;
  for (std::size_t item = 0; item < items; ++item) {
    auto found = offers->offered(item * stride);
    if (!found) return std::move(found).error().at_peer(peer);
    if (found->at.data() == nullptr) continue;
    offered.resize(items);
    offered[item] = *found;
  }
  return {};
}

void Channel::begin_to_invite(std::size_t tile) {
  inviting.tile = tile;
  inviting.turn = 0;
  inviting.next = 0;
  for (OpenMessages& messages : open) messages.taken = 0;
}

bool Channel::close_invitations() {
  return std::erase_if(inviting.peers, [&](std::uint16_t peer) { return receivers[peer]->landing()->closed(); }) > 0;
}

}  // namespace tutti
