#include "comm/channels.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "comm/mark_judge.h"
#include "comm/peer_memory_windows.h"
#include "net/signed_fifo.h"

namespace tutti {
namespace {

/// Slots are larger than the areas' slots if all messages use one transport that is faster with larger slots.
std::size_t slot_bytes_of(const Membership& members, const Transports& transports) {
  const std::size_t usual = members.area->area.shape().slot_bytes;
  std::optional<std::size_t> only;
  for (Rank peer = 0; peer < members.ranks; ++peer) {
    if (peer == members.rank) continue;
    const std::size_t one = transports.index_to(peer);
    if (only && *only != one) return usual;
    only = one;
  }
  // The result must be equal on all ranks, so it depends on all pairs: two peers of this rank may share a host.
  return only && members.each_on_its_own() ? std::max(usual, transports[*only].slot_bytes_min()) : usual;
}

std::string_view slowest_of(const Membership& members, const Transports& transports) {
  std::optional<std::size_t> slowest;
  for (Rank peer = 0; peer < members.ranks; ++peer)
    if (peer != members.rank) slowest = std::max(slowest.value_or(0), transports.index_to(peer));
  return slowest ? transports[*slowest].name() : std::string_view();
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
      transports_(process, members),
      slowest_(slowest_of(members, transports_)),
      slot_bytes_(slot_bytes_of(members, transports_)) {
  const int channels = members.area->area.shape().channels;
  for (int index = 0; index + 2 < channels; ++index) channels_.push_back(open(process, index, mark, history));
  point_to_point_ = open(process, channels - 2, mark, nullptr);
  messages_ = open(process, channels - 1, mark, nullptr);
}

Channel Channels::open(Process& process, int index, const CallMark& mark, const CallHistory* history) {
  Channel channel;
  channel.reserve(members_.ranks);
  for (Rank peer = 0; peer < members_.ranks; ++peer) {
    if (peer == members_.rank) continue;
    const auto at = static_cast<std::size_t>(peer);
    Transport& transport = transports_[transports_.index_to(peer)];
    sends_segments_ = sends_segments_ || transport.sends_segments();
    Ends ends = transport.open({.process = process,
                                .members = members_,
                                .peer = peer,
                                .channel = index,
                                .slot_bytes = slot_bytes_,
                                .memory = history != nullptr ? memory_.get() : nullptr,
                                .ranges = ranges_,
                                .falls_back = [this] { slowest_ = transports_.last().name(); }});
    if (ends.signal) channel.signals[at] = *ends.signal;
    channel.connections[at] = std::move(ends.connection);
    channel.senders[at] = std::move(ends.sender);
    channel.receivers[at] = std::move(ends.receiver);
    if (history == nullptr) continue;
    channel.senders[at] = std::make_unique<SignedSender>(std::move(channel.senders[at]), mark);
    channel.receivers[at] = std::make_unique<SignedReceiver>(
        std::move(channel.receivers[at]), mark, peer, MarkJudge(process.system, mark, *history, members_.rank, peer));
  }
  return channel;
}

bool Channels::opening(std::vector<PollItem>& items) const {
  bool any = false;
  const auto look = [&](const Channel& channel) {
    for (const auto& connection : channel.connections) {
      if (!connection) continue;
      connection->poll_set(items);
      any = any || connection->awaits_arrival();
    }
  };
  std::ranges::for_each(channels_, look);
  look(point_to_point_);
  return any;
}

void Channels::stop() {
  const auto stop = [](Channel& channel) {
    for (const auto& connection : channel.connections)
      if (connection) connection->stop();
  };
  std::ranges::for_each(channels_, stop);
  stop(point_to_point_);
}

ChannelRemains Channels::take_remains() {
  ChannelRemains all;
  const auto take = [&](Channel& channel) {
    for (const auto& connection : channel.connections) {
      if (!connection) continue;
      ChannelRemains one = connection->take_remains();
      std::ranges::move(one.sockets, std::back_inserter(all.sockets));
      std::ranges::move(one.kept, std::back_inserter(all.kept));
    }
  };
  std::ranges::for_each(channels_, take);
  take(point_to_point_);
  take(messages_);
  return all;
}

}  // namespace tutti
