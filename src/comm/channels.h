// The channels of a communicator: on each channel a sender to and a receiver from every peer.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "comm/call_history.h"
#include "comm/membership.h"
#include "comm/transports/transports.h"
#include "exec/channel.h"
#include "transport/offer.h"

namespace tutti {

class Channels {
 public:
  /// `history`: not null if ranks have no call descriptors; then the first message of a call on each connection carries
  /// `mark`. `failed` ends the wait for a peer's memory. All arguments must outlive this object.
  Channels(Process& process, const Membership& members, const CallMark& mark, const CallHistory* history,
           const std::atomic<bool>& failed);

  std::span<Channel> of_collectives() { return channels_; }
  Channel& point_to_point() { return point_to_point_; }
  Channel& messages() { return messages_; }

  /// Ordinary memory that devices may use.
  RegisteredRanges& registered_ranges() { return *ranges_; }

  /// Largest size of a message; equal on all ranks.
  std::size_t slot_bytes() const { return slot_bytes_; }
  /// Whether blocks of messages can stay in the buffers of a call.
  bool offers() const { return memory_ != nullptr; }
  /// Whether messages leave and arrive in segments without a copy.
  bool sends_segments() const { return sends_segments_; }
  /// Whether scratch memory should lie in a segment: peers or devices then read it in place.
  bool wants_segments() const { return offers() || sends_segments_; }
  /// Slots of a connection that plans may use. If calls are marked, the mark takes one slot.
  int slots() const { return members_.area->area.shape().slots - (members_.spans_hosts() ? 1 : 0); }

  /// Name of the slowest transport that calls by this access use, for messages and logs: the access itself, or a wire
  /// between hosts if slots to some peer are one. A string literal.
  std::string_view transport(Access access) const {
    return access == Access::slots && !slowest_.empty() ? slowest_ : name(access);
  }

  /// Adds the handles of connections being opened, but of messages: other threads open those. True while a peer has yet
  /// to open one of them.
  bool opening(std::vector<PollItem>& items) const;
  /// For a communicator that has failed: no device reads or writes the buffers of its calls any more. For the call
  /// whose turn it is.
  void stop();
  /// What all connections to other hosts leave. For the end of the communicator.
  ChannelRemains take_remains();

 private:
  Channel open(Process& process, int index, const CallMark& mark, const CallHistory* history);

  const Membership& members_;
  std::unique_ptr<OfferedMemory> memory_;  // null: messages through shared memory carry all of their blocks
  std::shared_ptr<RegisteredRanges> ranges_ = std::make_shared<RegisteredRanges>();  // links may end later
  Transports transports_;
  bool sends_segments_ = false;
  std::string_view slowest_;  ///< name of the last transport in the list that some pair uses
  std::size_t slot_bytes_;
  std::vector<Channel> channels_;
  Channel point_to_point_;
  Channel messages_;
  std::vector<Connection*> connections_;  ///< of all channels, those of messages last
  std::size_t connections_of_calls_ = 0;  ///< how many come before those
};

}  // namespace tutti
