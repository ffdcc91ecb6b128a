// The channels of a communicator: on each of them, what sends to and receives from every peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "comm/call_history.h"
#include "comm/membership.h"
#include "comm/transports.h"
#include "exec/run.h"

namespace tutti {

class Channels {
 public:
  /// `history`: where ranks have no call descriptors; then the first message of a call on each connection carries
  /// `mark`. All outlive it.
  Channels(Process& process, const Membership& members, const CallMark& mark, const CallHistory* history);

  std::span<Channel> of_collectives() { return channels_; }
  Channel& point_to_point() { return point_to_point_; }

  /// What a message may have at most; alike on all ranks.
  std::size_t slot_bytes() const { return slot_bytes_; }
  /// Of a connection, for plans: where the mark of a call takes one, they have one less.
  int slots() const { return members_.area->area.shape().slots - (members_.spans_hosts() ? 1 : 0); }

  /// What limits calls by that access, for people: slots of which some lead to sockets are called so. A literal.
  std::string_view transport(Access access) const {
    return access == Access::slots && !slowest_.empty() ? slowest_ : name(access);
  }

  /// Adds the handles of connections being opened. True while there are any that a peer is to open.
  bool opening(std::vector<PollItem>& items) const;
  /// Of all connections to other hosts, at their end.
  std::vector<Socket> take_sockets();

 private:
  Channel open(Process& process, int index, const CallMark& mark, const CallHistory* history);

  const Membership& members_;
  std::string_view slowest_;  ///< name of the last transport of the list that a pair goes by
  std::size_t slot_bytes_;
  std::vector<Channel> channels_;
  Channel point_to_point_;
  std::vector<std::shared_ptr<OpeningLink>> opening_;
};

}  // namespace tutti
