// The slots and signals of a run on one channel: what it has open towards its peers, and what is still to leave or to
// be read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"

#include "exec/pull.h"
#include "transport/connection.h"
#include "transport/fifo.h"
#include "transport/flag.h"

namespace tutti {

/// One channel's senders, receivers and signals, by rank; null where there is no connection.
struct Channel {
  std::vector<std::unique_ptr<Sender>> senders;
  std::vector<std::unique_ptr<Receiver>> receivers;
  std::vector<std::shared_ptr<Connection>> connections;  ///< null: there is nothing to open
  std::vector<Signal> signals;

  /// The messages that the run has open towards a peer on this channel. Kept here, not in the run, so that a call
  /// allocates nothing.
  struct OpenMessages {
    std::span<std::byte> filling;        ///< acquired, not yet committed: the message's bytes
    std::span<const std::byte> reading;  ///< peeked, not yet released
    const std::byte* line = nullptr;     ///< payload of the peer's call descriptor
    std::uint64_t taken = 0;             ///< messages released by a run that invites
    Landing* arriving = nullptr;         ///< `reading` arrives in parts; null: all of it is here
    /// by item of `reading`: where the block lies if the peer has offered it
    std::vector<OfferedBlock> offered;
  };
  std::vector<OpenMessages> open;
  std::vector<std::uint16_t> unsent;     ///< peers with messages that wait for a flush, or with an offered part of one
  std::vector<std::uint16_t> undrained;  ///< peers of whose messages the end, which nobody needs, is still to be read
  /// What a run that invites has told peers so far: the next invitation is number `next` of the plan's, for `tile`,
  /// before which the channel has had `turn` tiles.
  struct Inviting {
    std::size_t tile = 0;
    std::uint64_t turn = 0;
    std::uint32_t next = 0;
    std::vector<std::uint16_t> peers;  ///< that may still be able to write into buffers of the call
  };
  Inviting inviting;
  PullBuffer bounce;  ///< bounce buffer for data read by CMA, until it is reduced; empty until needed

  /// False where nothing can have come from `peer`, and the receiver's peek would have to open the connection.
  bool may_have_arrived(int peer) const {
    const auto& connection = connections[static_cast<std::size_t>(peer)];
    return !connection || connection->may_have_arrived();
  }

  /// Makes space for `ranks` peers, none connected.
  void reserve(int ranks);
  /// True if all messages to some peer have left.
  Result<bool> flush();
  /// True if the last of some peer's messages has been read to its end.
  Result<bool> drain();
  /// Notes which blocks of the peeked message lie in its sender's memory.
  Result<void> find_offered(std::uint16_t peer, std::size_t items, std::size_t stride);
  /// `tile`: the first one of this channel.
  void begin_to_invite(std::size_t tile);
  /// At the end of a run: true if one more peer cannot write into the call's buffers any more.
  bool close_invitations();
};

/// Adds a peer to some of a channel's, unless it is there.
inline void add_once(std::vector<std::uint16_t>& peers, std::uint16_t peer) {
  if (std::ranges::find(peers, peer) == peers.end()) peers.push_back(peer);
}

}  // namespace tutti
