// The messages of all channels: what each action on a slot needs, orders and leaves behind.
#pragma once

#include <vector>

#include "analysis/proof/check_channel.h"
#include "analysis/proof/check_links.h"

namespace tutti::proof {

/// Of actions that may wait, false: the channel has to. Errors: as check, with the channel's place.
class Messages {
 public:
  /// `slots`, `channels`: per connection and per rank. With 0 slots, a message lies in its sender's memory.
  Messages(int ranks, int slots, int channels, int items_max);

  Result<bool> acquire(Channel& l, const Action& a, Clocks& clocks);
  Result<void> commit(Channel& l, const Action& a, Clocks& clocks);
  Result<bool> peek(Channel& l, const Action& a, Clocks& clocks);
  Result<void> release(Channel& l, const Action& a, Clocks& clocks);
  bool settle(Channel& l, const Action& a, Clocks& clocks);

  /// An item of the message that is open for `p.peer`, or from it.
  Result<Slots::Item*> item(const Channel& l, const Action& a, const Place& p, bool written);
  /// Whether `peer` has released the channel's message with this number; then its sender knows it.
  bool released(const Channel& l, Rank peer, std::uint32_t number, Clocks& clocks);

  /// At the end of a call: messages in the sender's memory have been taken.
  Result<void> all_settled(const Channel& l);
  /// At the end of all calls.
  Result<void> all_taken(const Channel& l, Rank peer);

  Slots& of(const Channel& l) { return slots_[static_cast<std::size_t>(l.channel)]; }

 private:
  int ranks_;
  bool rendezvous_;           // 0 slots
  std::vector<Slots> slots_;  // by channel
};

}  // namespace tutti::proof
