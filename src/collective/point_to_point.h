// The sends and receives of one group: concurrent over all peers and both directions, in order per peer and direction.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "call/operation.h"
#include "call/request.h"
#include "collective/sender_memory.h"
#include "comm/communicator.h"
#include "comm/peer_failure.h"
#include "progress/access_lease.h"

namespace tutti {

/// The k-th send to a peer matches its k-th receive from this rank. The first slot of a message holds its length and
/// type, and whether the data follows in slots or is read from the sender's memory (mapped, or by CMA).
class PointToPoint final : public Operation {
 public:
  /// Both must outlive the operation. Errors in sends to this rank itself are returned by the first advance.
  PointToPoint(Communicator& communicator, std::span<const PeerRequest> requests);

  Result<Progress> advance() override;
  Communicator* communicator() override { return &communicator_; }
  std::string where() const override;
  Rank waits_for() const override;
  std::int64_t poll_set(std::vector<PollItem>& items) const override;

  /// Errors: remote (a rank left that messages must still come from or go to).
  Result<void> poll_peers() override;

  /// What precedes a message's data.
  struct Header {
    std::uint64_t bytes = 0;
    std::uint32_t type = 0;
    Carried carried;
  };

 private:
  struct Queue {
    Rank peer = 0;
    bool send = true;
    std::vector<const PeerRequest*> requests;
    std::size_t next = 0;
    std::size_t moved = 0;      // bytes of the current request
    bool begun = false;         // its header is sent or read
    bool by_reference = false;  // the receiver reads the sender's memory
    SenderMemory memory;        // by reference
    Stall stall;
  };

  Channel& channel() const { return communicator_.links().channels().point_to_point(); }
  Result<void> to_self();
  const Queue* first_open() const;
  Result<Progress> send(Queue& queue);
  Result<Progress> receive(Queue& queue);
  Result<bool> flush();
  Result<Progress> receive_by_reference(Queue& queue, const PeerRequest& request);
  Header header_of(const PeerRequest& request) const;
  Result<void> open(Queue& queue, const PeerRequest& request, const Header& header);
  Result<void> refuse(Queue& queue, Error why);
  void note_carrier(Rank peer, const Header& header);
  void finish(Queue& queue);

  Communicator& communicator_;
  std::vector<Queue> queues_;
  std::vector<const PeerRequest*> self_sends_;
  std::vector<const PeerRequest*> self_receives_;
  bool self_done_ = false;
  std::optional<AccessLease> lease_;  // held from the first message that is read from its sender's memory
};

}  // namespace tutti
