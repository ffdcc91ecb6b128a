// Tells peers where in the buffers of a call their next messages may be written.
#include <algorithm>

#include "exec/run.h"
#include "plan/inviting.h"

namespace tutti {

void Run::begin_to_invite() {
  for (std::size_t i = 0; i < static_cast<std::size_t>(channels_); ++i) {
    links_.channels[i].inviting.tile = i;
    links_.channels[i].inviting.next = 0;
    for (Channel::OpenMessages& open : links_.channels[i].open) open.taken = 0;
  }
}

/// Invites in the order of the plan, across tiles, until one must wait.
void Run::invite(Channel& channel, const ChannelState& state, std::size_t index) const {
  const std::size_t all = plan_->invitations.all.size();
  auto& [tile, next, peers] = channel.inviting;
  while (tile < binding_->split.tiles()) {
    for (; next < all; ++next)
      if (invite_one(channel, state, index) == Invited::later) return;
    next = 0;
    tile += static_cast<std::size_t>(channels_);
  }
}

/// `index`: of the channel, and so of its first tile.
Invited Run::invite_one(Channel& channel, const ChannelState& state, std::size_t index) const {
  const Invitation& next = plan_->invitations.all[channel.inviting.next];
  const Action& action = plan_->actions[next.pass];
  const std::size_t tile = channel.inviting.tile;
  Channel::OpenMessages& open = channel.open[next.peer];
  const std::uint64_t turn = (tile - index) / static_cast<std::size_t>(channels_);
  const std::uint64_t number = turn * plan_->invitations.messages[next.peer] + next.number;
  const bool is_now = tile == state.tile;
  if (number < open.taken || (is_now && state.action >= next.pass)) return Invited::no;
  // No tile touches what another one does.
  if (is_now ? state.action < next.free_from : next.free_from > 0) return Invited::later;
  const Range range = range_of(action, tile);
  if (range.count == 0) return Invited::no;
  const Piece whole{.at = range.begin, .count = range.count};
  const std::span memory(destination_of(channel, *landing_place(*plan_, action), whole),
                         range.count * binding_->split.element_bytes());
  // Of a message that is being filled, `keep` would copy what was offered.
  for (const std::uint16_t peer : channel.unsent)
    if (channel.open[peer].filling.data() != nullptr || !kept(*channel.senders[peer], memory)) return Invited::later;
  Landing* const landing = channel.receivers[next.peer]->landing();
  const Invited invited = landing == nullptr ? Invited::no : landing->invite(number - open.taken, memory);
  if (invited == Invited::yes && std::ranges::find(channel.inviting.peers, next.peer) == channel.inviting.peers.end())
    channel.inviting.peers.push_back(next.peer);
  return invited;
}

/// At the end: true if one more peer cannot write into the call's buffers any more.
bool Run::close_invitations(Channel& channel) const {
  const auto is_closed = [&](std::uint16_t peer) { return channel.receivers[peer]->landing()->closed(); };
  return std::erase_if(channel.inviting.peers, is_closed) > 0;
}

}  // namespace tutti
