// Fetches the data of large messages.
#include <algorithm>

#include "collective/mailbox.h"
#include "comm/peer_failure.h"
#include "progress/access_lease.h"

namespace tutti {

Result<Fetch::Read> Fetch::read(Communicator& communicator, PeerWindows& windows, MessageCounts& counts) {
  const auto refused = [&](Error why) -> Result<Read> {
    if (!note_refusal(communicator, why)) return why;
    header.carried.carry = Carry::slots;
    return Read::refused;
  };
  const AccessLease lease(communicator);
  if (auto failure = failure_of(communicator, from)) return *std::move(failure);
  const std::size_t bytes = header.bytes;
  if (moved == 0) {
    auto opened = SenderMemory::open(communicator, windows, from, header.carried, bytes);
    if (!opened) return refused(std::move(opened).error());
    memory = *opened;
  }
  const std::size_t piece = std::min(limits::pass_bytes, bytes - moved);
  if (auto copied = memory.copy(moved, {message->data + moved, piece}); !copied)
    return refused(std::move(copied).error());
  moved += piece;
  counts.note_move();
  if (moved < bytes) return Read::piece;
  // A sender that failed meanwhile may have changed the data read here.
  if (auto failure = failure_of(communicator, from)) return *std::move(failure);
  return Read::last_piece;
}

}  // namespace tutti
