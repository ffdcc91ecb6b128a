// How the data of a large message comes to the receive that has matched it: out of the sender's memory, piece by piece,
// or on demand through slots.
#pragma once

#include <cstddef>
#include <memory>

#include "collective/packet.h"

namespace tutti {

struct Fetch {
  enum class Read { piece, last_piece, refused };

  Rank from = 0;
  PacketHeader header;
  std::shared_ptr<Message> message;
  std::size_t moved = 0;
  SenderMemory memory = {};

  /// The sender is to be asked for the data, or has been.
  bool through_slots() const { return header.carried.carry == Carry::slots; }
  /// Reads a piece of the sender's memory. Refused: this rank may not, so the data comes through slots. Errors: the
  /// sender's failure; those of SenderMemory.
  Result<Read> read(Communicator& communicator, PeerWindows& windows, MessageCounts& counts);
};

}  // namespace tutti
