#include "transport/verbs/invitations.h"

#include <cstring>

namespace tutti::verbs {

bool Invitations::give(std::uint64_t message, std::span<std::byte> memory) {
  Mr* const mr = queues_.endpoint().registrations()->find(memory);
  if (mr == nullptr) return false;
  if (!queues_.make_window(message)) return false;
  if (queues_.owed() > 0 && !queues_.post_receives()) return false;
  QueuePair& queue = queues_.of(message);
  Invitation& invitation = invitations_[message % invitations_.size()];
  invitation = {.given = true,
                .message = message,
                .memory = memory,
                .destination = {.address = reinterpret_cast<std::uint64_t>(memory.data()),
                                .key = queues_.window(message)->open(queue, *mr, memory),
                                .bytes = static_cast<std::uint32_t>(memory.size())}};
  const Sge words{
      .addr = reinterpret_cast<std::uint64_t>(&invitation.destination), .length = sizeof(Destination), .lkey = 0};
  const Destination place = queues_.in_ring(shape_.invitation_at(message));
  queues_.add(queue,
              {.memory = std::span(&words, 1), .remote_address = place.address, .rkey = place.key, .is_inline = true},
              {.credit_only = true, .packed = true, .message = static_cast<std::uint32_t>(message)});
  return bool(queues_.post(queue));
}

void Invitations::close(std::uint64_t granted) {
  if (queues_.error()) return;  // the failure has ended them
  for (; closed_ < granted; ++closed_) {
    if (of(closed_) == nullptr) continue;
    if (queues_.of(closed_).space() == 0) return;
    queues_.window(closed_)->close();
    invitations_[closed_ % invitations_.size()].given = false;
  }
}

bool Invitations::all_closed(std::uint64_t taken) const {
  if (closed_ != taken) return false;
  for (std::size_t i = 0; i < invitations_.size(); ++i)
    if (invitations_[i].given ? invitations_[i].message < taken : !is_closed(i)) return false;
  return true;
}

/// The peer could change the words while they are read, so they are copied first.
bool PeerInvitations::take(std::uint32_t message, std::uint64_t committed) {
  const std::uint32_t ahead =
      (message - static_cast<std::uint32_t>(committed % Immediate::messages)) % Immediate::messages;
  // The message has left already.
  if (ahead >= Immediate::messages - 2 * shape_.ring_slots()) return true;
  if (ahead >= shape_.ring_slots()) return false;
  const std::uint64_t number = committed + ahead;
  Invitation& invitation = invitations_[number % invitations_.size()];
  std::memcpy(&invitation.destination, ring_ + shape_.invitation_at(number), sizeof invitation.destination);
  invitation.message = number;
  invitation.valid = invitation.destination.bytes > 0 && invitation.destination.bytes <= shape_.slot_bytes;
  return invitation.valid;
}

}  // namespace tutti::verbs
