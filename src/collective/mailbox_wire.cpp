// What a mailbox does with its connections, and with the packets that come.
#include <algorithm>
#include <cstring>
#include <utility>

#include "collective/mailbox.h"
#include "comm/peer_failure.h"
#include "transport/socket_stripes.h"

namespace tutti {

Result<void> Mailbox::advance() {
  for (Rank rank = 0; rank < communicator_.ranks(); ++rank) {
    if (rank == communicator_.rank()) continue;
    TUTTI_TRY(exchange(rank));
  }
  for (auto at = fetches_.begin(); at != fetches_.end();) {
    const auto fetch = at++;
    if (fetch->through_slots()) continue;
    const Rank from = fetch->from;
    auto read = fetch->read(communicator_, windows_, counts_);
    if (!read) return std::move(read).error().at_peer(from);
    if (*read == Fetch::Read::piece) continue;
    Peer& peer = peers_[from];
    if (*read == Fetch::Read::refused) {
      peer.outbox.reply(PacketKind::wanted, fetch->header);
    } else {
      peer.outbox.reply(PacketKind::taken, fetch->header, fetch->message);
      fetches_.erase(fetch);
    }
    auto pushed = peer.outbox.push(*peer.sender, peer.remote, counts_, peer.stall);
    if (!pushed) return std::move(pushed).error().at_peer(from);
  }
  return {};
}

Result<void> Mailbox::exchange(Rank rank) {
  Peer& peer = peers_[rank];
  if (wants(rank))
    if (auto pulled = pull(rank); !pulled) return lose(rank, std::move(pulled).error());
  auto pushed = peer.outbox.push(*peer.sender, peer.remote, counts_, peer.stall);
  if (!pushed) return lose(rank, std::move(pushed).error());
  return {};
}

/// The connection to a rank has ended. If the rank is gone, that is an error only for what needs it.
Result<void> Mailbox::lose(Rank rank, Error error) {
  Peer& peer = peers_[rank];
  const bool ended = error.code == Code::remote && !is_shifted(error);
  const bool gone = ended && (has_left(communicator_, rank) || failure_of(communicator_, rank));
  if (!gone || needs(rank)) return std::move(error).at_peer(rank);
  if (peer.small != nullptr) matching_.forget(*peer.small);  // the rest of it does not come any more
  peer.reset();
  peer.gone = std::move(error).at_peer(rank);
  for (Rank other = 0; other < communicator_.ranks(); ++other)
    if (other != communicator_.rank() && !this->gone(other)) return {};
  if (matching_.expects(MessageEnvelope::any)) return *peer.gone;
  return {};
}

Result<void> Mailbox::pull(Rank from) {
  constexpr int packets_at_once = 16;  // before the others' turn
  Peer& peer = peers_[from];
  for (int packets = 0; packets < packets_at_once;) {
    auto piece =
        TUTTI_TRY(peer.packet.peek(*peer.receiver, peer.remote, communicator_.links().channels().slot_bytes()));
    if (piece == ArrivingPacket::Piece::none) return {};
    if (piece == ArrivingPacket::Piece::first) TUTTI_TRY(open_packet(from));
    TUTTI_TRY(peer.packet.take(*peer.receiver));
    counts_.note_move();
    peer.stall.note_move();
    if (peer.packet.begun()) continue;
    TUTTI_TRY(close_packet(from));
    ++packets;
  }
  return {};
}

/// Says where the payload of a packet goes.
Result<void> Mailbox::open_packet(Rank from) {
  Peer& peer = peers_[from];
  const PacketHeader& header = peer.packet.header();
  if (header.kind == PacketKind::small) {
    peer.small = TUTTI_TRY(matching_.keep(from, header));
    peer.packet.goes_to(peer.small->data.data());
    if (const auto receive = matching_.receive_of(*peer.small)) take(*peer.small, receive);
  } else if (header.kind == PacketKind::data) {  // of a message that this rank has asked for
    const auto fetch = std::ranges::find_if(fetches_, [&](const Fetch& each) {
      return each.from == from && each.header.id == header.id && each.through_slots();
    });
    if (fetch == fetches_.end() || fetch->header.bytes != header.bytes) return nonsense("nobody asked for its data");
    peer.packet.goes_to(fetch->message->data);
    peer.data_of = fetch->message;
    fetches_.erase(fetch);
  }
  return {};
}

Result<void> Mailbox::close_packet(Rank from) {
  Peer& peer = peers_[from];
  const PacketHeader& header = peer.packet.header();
  Unexpected* const small = std::exchange(peer.small, nullptr);
  const std::shared_ptr<Message> data_of = std::move(peer.data_of);
  switch (header.kind.checked().value()) {
    case PacketKind::small:
      small->whole = true;
      if (const auto message = std::move(small->taken_by)) {
        if (!message->error && header.bytes > 0) std::memcpy(message->data, small->data.data(), header.bytes);
        counts_.end(*message);
        matching_.forget(*small);
      }
      return {};
    case PacketKind::offer: {
      auto kept = TUTTI_TRY(matching_.keep(from, header));
      kept->whole = true;
      if (const auto receive = matching_.receive_of(*kept)) take(*kept, receive);
      return {};
    }
    case PacketKind::data: counts_.end(*data_of); return {};
    case PacketKind::wanted:
    case PacketKind::taken: return peer.outbox.answered(header, counts_);
  }
  return {};
}

void Mailbox::poll_set(std::vector<PollItem>& items) {
  const std::lock_guard lock(mutex_);
  for (Rank rank = 0; rank < communicator_.ranks(); ++rank) {
    const Peer& peer = peers_[rank];
    if (!peer.remote) continue;
    if (peer.outbox.waits_to_leave()) peer.sender->poll_set(items);
    if (wants(rank)) peer.receiver->poll_set(items);
  }
}

}  // namespace tutti
