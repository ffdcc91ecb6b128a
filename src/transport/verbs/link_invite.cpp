// Messages that are written into memory of their receiver's caller: the receiver opens a window on it and tells the
// sender where it is, and closes the window when it has released the message.
#include <algorithm>
#include <cstring>

#include "transport/verbs/link.h"

namespace tutti::verbs {

/// Queue pairs have no common order, so each has places of its own: a late invitation never overwrites a later one.
std::byte* Link::invitation_area(std::uint64_t message) const {
  const std::size_t ring = shape_.ring_slots();
  const std::size_t place = message % queues_.size() * ring + message % ring;
  return ring_->data() + ring * shape_.slot_bytes + place * sizeof(Destination);
}

Invited Link::invite(std::size_t ahead, std::span<std::byte> memory) {
  const std::uint64_t number = taken_ + ahead;
  if (error_ || !invites_ || memory.empty() || memory.size() > shape_.slot_bytes) return Invited::no;
  if (number - granted_ >= shape_.ring_slots()) return Invited::later;
  Invitation& invitation = invitation_at(number);
  if (arriving(number).pieces != 0 || (invitation.given && invitation.message == number)) return Invited::no;
  close_windows();
  QueuePair& queue = queue_for(number, 0);
  if (!is_closed(invitation) || queue.space() < invitation_sends + space_needed()) {
    (void)flush();  // what closes the window
    endpoint_->poll();
    return error_ ? Invited::no : Invited::later;
  }
  Mr* const mr = endpoint_->registrations()->find(memory);
  if (mr == nullptr) return Invited::no;
  if (!invitation.window) invitation.window = MemoryWindow::make(endpoint_);
  invites_ = invitation.window != nullptr;
  if (!invites_) return Invited::no;
  if (owed_ > 0 && !post_receives()) return Invited::no;
  invitation.given = true;
  invitation.message = number;
  invitation.memory = memory;
  invitation.destination = {.address = reinterpret_cast<std::uint64_t>(memory.data()),
                            .key = invitation.window->open(queue, *mr, memory),
                            .bytes = static_cast<std::uint32_t>(memory.size())};
  return send_invitation(queue, invitation) ? Invited::yes : Invited::no;
}

/// At once: a late invitation is of no use.
Result<void> Link::send_invitation(QueuePair& queue, const Invitation& invitation) {
  const Sge words{
      .addr = reinterpret_cast<std::uint64_t>(&invitation.destination), .length = sizeof(Destination), .lkey = 0};
  queue.add(
      {.memory = std::span(&words, 1),
       .remote_address = to_.ring + static_cast<std::uint64_t>(invitation_area(invitation.message) - ring_->data()),
       .rkey = to_.rkey,
       .immediate = Immediate{.credit_only = true,
                              .packed = true,
                              .message = static_cast<std::uint32_t>(invitation.message % Immediate::messages),
                              .credits = take_credits()}
                        .pack(),
       .is_inline = true});
  auto posted = queue.post();
  if (posted) return {};
  fail(refused_here(posted.error()));
  return *error_;
}

/// The invitation for a message that the peer says it has written into this end's memory; null: there is none.
const Link::Invitation* Link::invitation_of(std::uint64_t message) const {
  const Invitation& one = invitations_[message % invitations_.size()];
  return one.given && one.message == message ? &one : nullptr;
}

bool Link::is_closed(const Invitation& invitation) const {
  return !invitation.window || invitation.window->is_closed();
}

/// Closes those of messages that are complete and released.
void Link::close_windows() {
  if (error_) return;  // the failure has ended them
  for (; closed_ < granted_; ++closed_) {
    Invitation& invitation = invitation_at(closed_);
    if (!invitation.given || invitation.message != closed_) continue;
    if (queue_for(closed_, 0).space() == 0) return;
    invitation.window->close();
    invitation.given = false;
  }
}

bool Link::closed() {
  const auto all_closed = [&] {
    return closed_ == taken_ && std::ranges::all_of(invitations_, [&](const Invitation& i) {
             return i.given ? i.message >= taken_ : is_closed(i);
           });
  };
  if (error_ || all_closed()) return true;
  close_windows();
  (void)flush();  // an error closes them, too
  endpoint_->poll();
  wants_closed_ = !error_ && !all_closed();
  return !wants_closed_;
}

/// What the peer has written about where it wants a message. It could change the words while they are read, so they are
/// copied first. False: no such invitation can come now.
bool Link::take_invitation(std::uint32_t message) {
  const std::uint32_t ahead =
      (message - static_cast<std::uint32_t>(committed_ % Immediate::messages)) % Immediate::messages;
  invited_ = true;
  // The message has left already.
  if (ahead >= Immediate::messages - 2 * shape_.ring_slots()) return true;
  if (ahead >= shape_.ring_slots()) return false;
  const std::uint64_t number = committed_ + ahead;
  PeerInvitation& invitation = peer_invitations_[number % shape_.ring_slots()];
  std::memcpy(&invitation.destination, invitation_area(number), sizeof invitation.destination);
  invitation.message = number;
  invitation.valid = invitation.destination.bytes > 0 && invitation.destination.bytes <= shape_.slot_bytes;
  return invitation.valid;
}

/// Where the peer wants the message to be written; null: into its slot.
const Link::Destination* Link::destination_of(std::uint64_t message) const {
  const PeerInvitation& invitation = peer_invitations_[message % shape_.ring_slots()];
  return invitation.valid && invitation.message == message ? &invitation.destination : nullptr;
}

}  // namespace tutti::verbs
