#include "exec/invite.h"

#include <span>

#include "plan/inviting.h"

namespace tutti {
namespace {

Invited invite_one(const BoundPlan& bound, Channel& channel, const Cursor& cursor) {
  const Plan& plan = bound.plan();
  const Invitation& next = plan.invitations.all[channel.inviting.next];
  const Action& action = plan.actions[next.pass];
  const std::size_t tile = channel.inviting.tile;
  const std::uint64_t taken = channel.open[next.peer].taken;
  const std::uint64_t number = channel.inviting.turn * plan.invitations.messages[next.peer] + next.number;
  const bool is_now = tile == cursor.tile;
  if (number < taken || (is_now && cursor.action >= next.pass)) return Invited::no;
  // No tile touches what another one does.
  if (is_now ? cursor.action < next.free_from : next.free_from > 0) return Invited::later;
  const Range range = bound.range_of(action, tile);
  if (range.count == 0) return Invited::no;
  const Piece whole{.at = range.begin, .count = range.count};
  const std::span memory(bound.destination_of(channel, *landing_place(plan, action), whole),
                         range.count * bound.binding().split.element_bytes());
  // Of a message that is being filled, `keep` would copy what was offered.
  for (const std::uint16_t peer : channel.unsent)
    if (channel.open[peer].filling.data() != nullptr || !kept(*channel.senders[peer], memory)) return Invited::later;
  Landing* const landing = channel.receivers[next.peer]->landing();
  const Invited invited = landing == nullptr ? Invited::no : landing->invite(number - taken, memory);
  if (invited == Invited::yes) add_once(channel.inviting.peers, next.peer);
  return invited;
}

}  // namespace

void invite(const BoundPlan& bound, Channel& channel, const Cursor& cursor, std::size_t channels) {
  const std::size_t all = bound.plan().invitations.all.size();
  Channel::Inviting& inviting = channel.inviting;
  while (inviting.tile < bound.binding().split.tiles()) {
    for (; inviting.next < all; ++inviting.next)
      if (invite_one(bound, channel, cursor) == Invited::later) return;
    inviting.next = 0;
    inviting.tile += channels;
    ++inviting.turn;
  }
}

}  // namespace tutti
