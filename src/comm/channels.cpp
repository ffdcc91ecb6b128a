#include "comm/channels.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "comm/peer_memory_windows.h"
#include "comm/signed_fifo.h"

namespace tutti {
namespace {

/// Slots are larger than the areas' slots if all messages use one transport that is faster with larger slots.
std::size_t slot_bytes_of(const Membership& members) {
  const std::size_t usual = members.area->area.shape().slot_bytes;
  const Transport* only = nullptr;
  for (Rank peer = 0; peer < members.ranks; ++peer) {
    if (peer == members.rank) continue;
    const Transport& one = transport_to(members, peer);
    if (only != nullptr && only != &one) return usual;
    only = &one;
  }
  // The result must be equal on all ranks, so it depends on all pairs: two peers of this rank may share a host.
  return only != nullptr && members.each_on_its_own() ? std::max(usual, only->slot_bytes_min) : usual;
}

std::string_view slowest_of(const Membership& members) {
  const Transport* slowest = nullptr;
  for (Rank peer = 0; peer < members.ranks; ++peer)
    if (peer != members.rank) slowest = std::max(slowest, &transport_to(members, peer));
  return slowest == nullptr ? std::string_view() : slowest->name;
}

/// Ranks that have call descriptors access each other's buffers without messages.
std::unique_ptr<OfferedMemory> memory_of(Process& process, const Membership& members, const CallMark& mark,
                                         const std::atomic<bool>& failed) {
  const std::string& transport = process.config.text("TUTTI_TRANSPORT");
  if (transport == "slots" || !members.spans_hosts() || !members.shares_memory()) return nullptr;
  return std::make_unique<PeerMemoryWindows>(process, members, mark, failed);
}

}  // namespace

Channels::Channels(Process& process, const Membership& members, const CallMark& mark, const CallHistory* history,
                   const std::atomic<bool>& failed)
    : members_(members),
      memory_(memory_of(process, members, mark, failed)),
      slowest_(slowest_of(members)),
      slot_bytes_(slot_bytes_of(members)) {
  const int channels = members.area->area.shape().channels;
  for (int index = 0; index + 1 < channels; ++index) channels_.push_back(open(process, index, mark, history));
  point_to_point_ = open(process, channels - 1, mark, nullptr);
}

Channel Channels::open(Process& process, int index, const CallMark& mark, const CallHistory* history) {
  Channel channel;
  channel.reserve(members_.ranks);
  for (Rank peer = 0; peer < members_.ranks; ++peer) {
    if (peer == members_.rank) continue;
    const auto at = static_cast<std::size_t>(peer);
    Ends ends = transport_to(members_, peer)
                    .open({.process = process,
                           .members = members_,
                           .peer = peer,
                           .channel = index,
                           .slot_bytes = slot_bytes_,
                           .memory = history != nullptr ? memory_.get() : nullptr});
    if (ends.signal) channel.signals[at] = *ends.signal;
    if (ends.opening) opening_.push_back(std::move(ends.opening));
    channel.senders[at] = std::move(ends.sender);
    channel.receivers[at] = std::move(ends.receiver);
    if (history == nullptr) continue;
    channel.senders[at] = std::make_unique<SignedSender>(std::move(channel.senders[at]), mark);
    channel.receivers[at] = std::make_unique<SignedReceiver>(std::move(channel.receivers[at]), process.system, mark,
                                                             *history, members_.rank, peer);
  }
  return channel;
}

bool Channels::opening(std::vector<PollItem>& items) const {
  bool any = false;
  for (const auto& link : opening_) {
    link->poll_set(items);
    any = any || link->awaits_arrival();
  }
  return any;
}

std::vector<Socket> Channels::take_sockets() {
  std::vector<Socket> sockets;
  for (const auto& link : opening_) std::ranges::move(link->take_sockets(), std::back_inserter(sockets));
  return sockets;
}

}  // namespace tutti
