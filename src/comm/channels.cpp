#include "comm/channels.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "call/mismatch.h"
#include "comm/peer_windows.h"
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

/// What it means that a message of `peer` carries the mark of another call than `mark`, that of the call that this rank
/// is in. If the numbers of the calls differ, an earlier call differed. Either `history`, the values that `mark` has
/// had, shows which call, or CallComparison finds it within a moment, so wait for that at most a second. False: ask
/// again. Errors: invalid_usage (both calls are named). What is passed outlives the judge.
SignedReceiver::Judge mark_judge(System& system, const CallMark& mark, const CallHistory& history, int rank, int peer) {
  return [&system, &mark, &history, rank, peer,
          differs_since_ns = std::int64_t{0}](const CallMark& theirs) mutable -> Result<bool> {
    constexpr std::int64_t name_limit_ns = 1'000'000'000;
    const MadeCall made{peer, theirs.sequence, theirs.signature};
    if (theirs.sequence == mark.sequence) return differing_calls({rank, mark.sequence, mark.signature}, made);
    const auto own = history.find(theirs.sequence);
    if (own && !(own->last.signature == theirs.signature))
      return differing_calls({rank, theirs.sequence, own->last.signature}, made);
    const std::int64_t now = system.now_ns();
    if (differs_since_ns == 0) differs_since_ns = now;
    if (now - differs_since_ns < name_limit_ns) return false;
    return differing_calls({rank, mark.sequence, mark.signature}, made);
  };
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
  connections_of_calls_ = connections_.size();
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
    if (ends.connection) connections_.push_back(ends.connection.get());
    channel.connections[at] = std::move(ends.connection);
    channel.senders[at] = std::move(ends.sender);
    channel.receivers[at] = std::move(ends.receiver);
    if (history == nullptr) continue;
    channel.senders[at] = std::make_unique<SignedSender>(std::move(channel.senders[at]), mark);
    channel.receivers[at] = std::make_unique<SignedReceiver>(
        std::move(channel.receivers[at]), mark, peer, mark_judge(process.system, mark, *history, members_.rank, peer));
  }
  return channel;
}

bool Channels::opening(std::vector<PollItem>& items) const {
  bool any = false;
  for (const Connection* const connection : std::span(connections_).first(connections_of_calls_)) {
    connection->poll_set(items);
    any = any || connection->awaits_arrival();
  }
  return any;
}

void Channels::stop() {
  for (Connection* const connection : std::span(connections_).first(connections_of_calls_)) connection->stop();
}

ChannelRemains Channels::take_remains() {
  ChannelRemains all;
  for (Connection* const connection : connections_) {
    ChannelRemains one = connection->take_remains();
    std::ranges::move(one.sockets, std::back_inserter(all.sockets));
    std::ranges::move(one.kept, std::back_inserter(all.kept));
  }
  return all;
}

}  // namespace tutti
