// Packets of a mailbox on its connections. A packet is a header and a payload, in as many slots as it needs. Between
// hosts slots carry no length, so there the header has a slot of its own.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "collective/mailbox.h"
#include "comm/peer_failure.h"
#include "progress/access_lease.h"
#include "transport/socket_trailer.h"

namespace tutti {
namespace {

constexpr std::size_t kept_bytes_max = std::size_t{64} << 20;
constexpr int packets_at_once = 16;  // of one peer, before the others' turn

Error nonsense(std::string_view what) {
  return {.code = Code::remote, .what = fmt::format("a message cannot be read: {}", what)};
}

}  // namespace

Sender& Mailbox::sender(Rank peer) {
  return *communicator_.channels().messages().senders[static_cast<std::size_t>(peer)];
}

Receiver& Mailbox::receiver(Rank peer) {
  return *communicator_.channels().messages().receivers[static_cast<std::size_t>(peer)];
}

Result<void> Mailbox::advance() {
  for (Rank rank = 0; rank < communicator_.ranks(); ++rank) {
    if (rank == communicator_.rank()) continue;
    TUTTI_TRY(exchange(rank));
  }
  for (auto each = fetches_.begin(); each != fetches_.end();) {
    if (each->header.carried.carry == Carry::slots) {
      ++each;
      continue;
    }
    auto fetched = fetch(*each);
    if (!fetched) return std::move(fetched).error().at_peer(each->from);
    if (!*fetched) {
      ++each;
      continue;
    }
    reply(each->from, Kind::taken, each->header, each->message);
    const Rank from = each->from;
    each = fetches_.erase(each);
    if (auto pushed = push(from); !pushed) return std::move(pushed).error().at_peer(from);
  }
  return {};
}

Result<void> Mailbox::exchange(Rank rank) {
  if (wants(rank))
    if (auto pulled = pull(rank); !pulled) return lose(rank, std::move(pulled).error());
  if (auto pushed = push(rank); !pushed) return lose(rank, std::move(pushed).error());
  return {};
}

/// The connection to a rank has ended. If the rank is gone, that is an error only for what needs it.
Result<void> Mailbox::lose(Rank rank, Error error) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  const bool ended = error.code == Code::remote && !is_shifted(error);
  const bool gone = ended && (has_left(communicator_, rank) || failure_of(communicator_, rank));
  if (!gone || needs(rank)) return std::move(error).at_peer(rank);
  if (peer.incoming.small != nullptr) forget(*peer.incoming.small);  // the rest of it does not come any more
  peer = {};
  peer.gone = std::move(error).at_peer(rank);
  for (Rank other = 0; other < communicator_.ranks(); ++other)
    if (other != communicator_.rank() && !this->gone(other)) return {};
  if (receives_from_anybody()) return *peer.gone;
  return {};
}

// ---- Sending ----

Result<void> Mailbox::push(Rank to) {
  Peer& peer = peers_[static_cast<std::size_t>(to)];
  if (peer.outbox.empty() && peer.unflushed.empty()) return {};
  Sender& sender = this->sender(to);
  while (!peer.outbox.empty()) {
    auto slot = TUTTI_TRY(sender.acquire());
    if (slot.empty()) break;
    Outgoing& out = peer.outbox.front();
    std::size_t used = 0;
    if (!out.begun) {
      std::memcpy(slot.data(), &out.header, sizeof out.header);
      used = sizeof out.header;
      out.begun = true;
      if (out.message) out.message->begun = true;
    }
    if (used == 0 || !remote(to)) {
      const std::size_t piece = std::min(slot.size() - used, out.bytes - out.moved);
      if (piece > 0) std::memcpy(slot.data() + used, out.payload + out.moved, piece);
      out.moved += piece;
      used += piece;
    }
    TUTTI_TRY(sender.commit(used));
    ++moves_;
    peer.stall.note_move();
    if (out.moved < out.bytes) continue;
    if (out.header.kind == Kind::offer)
      peer.offered.emplace_back(out.header.id, std::move(out.message));
    else if (out.message)
      peer.unflushed.push_back(std::move(out.message));
    peer.outbox.pop_front();
  }
  auto flushed = TUTTI_TRY(sender.flush());
  if (!flushed) return {};
  for (const auto& message : peer.unflushed)
    end(*message, message->error ? Message::State::failed : Message::State::done);
  peer.unflushed.clear();
  return {};
}

// ---- Receiving ----

Result<void> Mailbox::pull(Rank from) {
  Receiver& receiver = this->receiver(from);
  Incoming& incoming = peers_[static_cast<std::size_t>(from)].incoming;
  for (int packets = 0; packets < packets_at_once;) {
    const std::size_t slot_bytes = communicator_.channels().slot_bytes();
    const std::size_t length =
        incoming.begun ? std::min<std::size_t>(slot_bytes, incoming.header.bytes - incoming.moved) : sizeof(Header);
    auto slot = receiver.peek(remote(from) ? length : 0);  // shared memory stores the length
    if (!slot) return std::move(slot).error();
    if (slot->data() == nullptr) return {};
    std::span<const std::byte> bytes = *slot;
    if (!incoming.begun) {
      TUTTI_TRY(open_packet(from, bytes));
      bytes = bytes.subspan(sizeof(Header));
    }
    const bool has_payload = incoming.header.kind == Kind::small || incoming.header.kind == Kind::data;
    const std::size_t left = has_payload ? incoming.header.bytes - incoming.moved : 0;
    if (bytes.size() > left) return nonsense("it is longer than its header says");
    if (!bytes.empty()) std::memcpy(incoming.into + incoming.moved, bytes.data(), bytes.size());
    incoming.moved += bytes.size();
    TUTTI_TRY(receiver.release());
    ++moves_;
    peers_[static_cast<std::size_t>(from)].stall.note_move();
    if (has_payload && incoming.moved < incoming.header.bytes) continue;
    TUTTI_TRY(close_packet(from));
    ++packets;
  }
  return {};
}

/// Room for a message that has come; the data of a small one is to follow. Errors: system (too much is kept).
Result<Mailbox::Unexpected*> Mailbox::keep(Rank from, const Header& header) {
  Unexpected aside{.from = from, .header = header};
  if (header.kind == Kind::small) aside.data.resize(header.bytes);
  if (kept_bytes_ + aside.kept_bytes() > kept_bytes_max)
    return Error{
        .code = Code::system,
        .what = fmt::format("more than {} MiB of messages have come that no receive takes", kept_bytes_max >> 20)};
  kept_bytes_ += aside.kept_bytes();
  return &unexpected_.emplace_back(std::move(aside));
}

Result<void> Mailbox::open_packet(Rank from, std::span<const std::byte> bytes) {
  Incoming& incoming = peers_[static_cast<std::size_t>(from)].incoming;
  if (bytes.size() < sizeof(Header)) return nonsense("it has no header");
  incoming = {.begun = true};
  std::memcpy(&incoming.header, bytes.data(), sizeof incoming.header);
  const Header& header = incoming.header;
  const auto kind = header.kind.checked();
  if (!kind) return nonsense("its kind is unknown");
  if (!enumerator<DataType>(header.type) || !header.carried.carry.checked() || header.tag < 0 ||
      header.bytes > PTRDIFF_MAX)
    return nonsense("its header is wrong");
  const bool by_address = header.carried.carry != Carry::slots;
  if (by_address && (*kind != Kind::offer || remote(from))) return nonsense("its data cannot be reached");
  switch (*kind) {
    case Kind::small: {
      constexpr std::size_t small_bytes_most = 16 * 1024;
      if (header.bytes > small_bytes_most) return nonsense("it is too long to be small");
      incoming.small = TUTTI_TRY(keep(from, header));
      incoming.into = incoming.small->data.data();
      arrived(*incoming.small);
      return {};
    }
    case Kind::data: return expect_data(from, incoming);
    case Kind::offer:
    case Kind::wanted:
    case Kind::taken: return {};
  }
  return {};
}

/// The data of a message that this rank has asked for.
Result<void> Mailbox::expect_data(Rank from, Incoming& incoming) {
  const auto fetch = std::ranges::find_if(fetches_, [&](const Fetch& each) {
    return each.from == from && each.header.id == incoming.header.id && each.header.carried.carry == Carry::slots;
  });
  if (fetch == fetches_.end() || fetch->header.bytes != incoming.header.bytes)
    return nonsense("nobody asked for its data");
  incoming.into = fetch->message->data;
  incoming.data_of = fetch->message;
  fetches_.erase(fetch);
  return {};
}

Result<void> Mailbox::close_packet(Rank from) {
  Incoming& incoming = peers_[static_cast<std::size_t>(from)].incoming;
  const Header header = incoming.header;
  Unexpected* const small = incoming.small;
  const std::shared_ptr<Message> data_of = std::move(incoming.data_of);
  incoming = {};
  switch (header.kind.checked().value()) {
    case Kind::small:
      small->whole = true;
      if (const auto message = std::move(small->taken_by)) {
        if (!message->error && header.bytes > 0) std::memcpy(message->data, small->data.data(), header.bytes);
        end(*message, message->error ? Message::State::failed : Message::State::done);
        forget(*small);
      }
      return {};
    case Kind::offer: {
      auto kept = TUTTI_TRY(keep(from, header));
      kept->whole = true;
      arrived(*kept);
      return {};
    }
    case Kind::data: end(*data_of, Message::State::done); return {};
    case Kind::wanted:
    case Kind::taken: return answered(from, header);
  }
  return {};
}

/// What a receiver says of an offer: that it wants the data, or that it has taken it.
Result<void> Mailbox::answered(Rank from, const Header& header) {
  Peer& peer = peers_[static_cast<std::size_t>(from)];
  const auto offer = std::ranges::find(peer.offered, header.id, [](const auto& each) { return each.first; });
  if (offer == peer.offered.end()) return nonsense("it answers an offer that was not made");
  const std::shared_ptr<Message> message = std::move(offer->second);
  peer.offered.erase(offer);
  if (header.kind == Kind::taken) {
    end(*message, Message::State::done);
    return {};
  }
  Header data{.kind = Kind::data,
              .type = static_cast<std::uint32_t>(message->envelope.type),
              .tag = message->envelope.tag,
              .bytes = message->envelope.bytes,
              .id = header.id};
  peer.outbox.push_back(
      {.header = data, .payload = message->data, .bytes = message->envelope.bytes, .message = message});
  return {};
}

/// Asks for the data of a message whose sender's memory this rank may not read.
Result<bool> Mailbox::ask_instead(Fetch& fetch, Error why) {
  if (!note_refusal(communicator_, why)) return why;
  fetch.header.carried.carry = Carry::slots;
  reply(fetch.from, Kind::wanted, fetch.header);
  TUTTI_TRY(push(fetch.from));
  return false;
}

/// Reads a piece of the sender's memory. True: that was the last one.
Result<bool> Mailbox::fetch(Fetch& fetch) {
  const AccessLease lease(communicator_);
  if (auto failure = failure_of(communicator_, fetch.from)) return *std::move(failure);
  const std::size_t bytes = fetch.header.bytes;
  if (fetch.moved == 0) {
    auto memory = SenderMemory::open(communicator_, windows_, fetch.from, fetch.header.carried, bytes);
    if (!memory) return ask_instead(fetch, std::move(memory).error());
    fetch.memory = *memory;
  }
  const std::size_t piece = std::min(limits::pass_bytes, bytes - fetch.moved);
  if (auto copied = fetch.memory.copy(fetch.moved, {fetch.message->data + fetch.moved, piece}); !copied)
    return ask_instead(fetch, std::move(copied).error());
  fetch.moved += piece;
  ++moves_;
  if (fetch.moved < bytes) return false;
  // A sender that failed meanwhile may have changed the data read here.
  if (auto failure = failure_of(communicator_, fetch.from)) return *std::move(failure);
  return true;
}

void Mailbox::poll_set(std::vector<PollItem>& items) {
  const std::lock_guard lock(mutex_);
  for (Rank rank = 0; rank < communicator_.ranks(); ++rank) {
    if (rank == communicator_.rank() || !remote(rank)) continue;
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (!peer.outbox.empty() || !peer.unflushed.empty()) sender(rank).poll_set(items);
    if (wants(rank)) receiver(rank).poll_set(items);
  }
}

}  // namespace tutti
