// What ranks that leave have not received, or others of theirs.
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "collective/mailbox.h"
#include "collective/point_to_point.h"
#include "comm/peer_failure.h"
#include "plan/amount.h"

namespace tutti {
namespace {

using Header = PointToPoint::Header;

Error misuse(Rank peer, std::string what) {
  return {.code = Code::invalid_usage, .what = std::move(what), .peer = peer};
}

Error not_received(const Communicator& communicator, Rank from, const std::string& what) {
  return misuse(from, fmt::format("rank {} sent {}, which rank {} has not received before it left", from, what,
                                  communicator.rank()));
}

/// The first slot that a peer has filled and this rank has not asked for; null: none, also where a connection has
/// ended, which brings nothing more. `header`: the bytes of a message's header.
std::span<const std::byte> first_from(Communicator& communicator, Channel& channel, Rank peer, std::size_t header) {
  if (!channel.may_have_arrived(peer)) return {};
  const bool remote = communicator.members().peers[peer].remote();
  const auto message = channel.receivers[peer]->peek(remote ? header : 0);  // shared memory stores the length
  return message ? *message : std::span<const std::byte>();
}

/// What a peer has sent and this rank has not asked for.
Result<void> check_from(Communicator& communicator, Rank peer) {
  Channels& channels = communicator.links().channels();
  Header header;
  const auto message = first_from(communicator, channels.point_to_point(), peer, sizeof header);
  if (message.data() == nullptr) return {};
  if (message.size() < sizeof header) return Error{.code = Code::remote, .what = "a message has no header"};
  std::memcpy(&header, message.data(), sizeof header);
  const bool remote = communicator.members().peers[peer].remote();
  const std::size_t fits = channels.slot_bytes() * static_cast<std::size_t>(channels.slots()) - sizeof header;
  // The sender of such a message still waits, and hears that this rank leaves.
  if (!remote && (header.carried.carry != Carry::slots || header.bytes > fits)) return {};
  return not_received(communicator, peer, amount(header.bytes, header.type));
}

/// Of ranks of this host alone: others confirm nothing. Whoever has received all messages of this rank has read all
/// that it has sent.
Result<void> check_to(Communicator& communicator, Channel& channel, Rank peer) {
  if (communicator.members().peers[peer].remote() || !has_left(communicator, peer)) return {};
  const auto settled = channel.senders[peer]->settled();
  if (!settled || *settled != Settled::not_yet) return {};
  return misuse(peer, fmt::format("{} left without receiving a message that rank {} has sent to it",
                                  communicator.members().describe(peer), communicator.rank()));
}

/// For a communicator that has no mailbox: whether something lies there for one.
bool has_mail(Communicator& communicator) {
  Channel& channel = communicator.links().channels().messages();
  for (Rank rank = 0; rank < communicator.ranks(); ++rank)
    if (rank != communicator.rank() && first_from(communicator, channel, rank, sizeof(PacketHeader)).data() != nullptr)
      return true;
  return false;
}

}  // namespace

Result<void> Mailbox::check_received() {
  const std::lock_guard lock(mutex_);
  for (Rank rank = 0; rank < communicator_.ranks(); ++rank) {
    if (rank == communicator_.rank() || peers_[rank].gone) continue;
    if (!communicator_.links().channels().messages().may_have_arrived(rank)) continue;
    for (std::uint64_t before = counts_.moves() - 1; counts_.moves() != before;) {
      before = counts_.moves();
      if (!pull(rank)) break;  // a connection that has ended brings nothing more
    }
  }
  const Unexpected* const kept = matching_.kept_for({.source = MessageEnvelope::any, .tag = MessageEnvelope::any});
  if (kept == nullptr) return {};
  return not_received(communicator_, kept->from,
                      fmt::format("{} with tag {}", amount(kept->header.bytes, kept->header.type), kept->header.tag));
}

Result<void> check_all_received(Communicator& communicator) {
  for (Rank peer = 0; peer < communicator.ranks(); ++peer) {
    if (peer == communicator.rank()) continue;
    TUTTI_TRY(check_from(communicator, peer));
    Channels& channels = communicator.links().channels();
    for (Channel* const channel : {&channels.point_to_point(), &channels.messages()})
      TUTTI_TRY(check_to(communicator, *channel, peer));
  }
  if (communicator.beside_calls().background() == nullptr && !has_mail(communicator)) return {};
  return mailbox_of(communicator).check_received();
}

}  // namespace tutti
