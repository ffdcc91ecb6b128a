// How messages with tags are started, matched, cancelled and failed, and which ranks they need.
#include "collective/mailbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "comm/peer_failure.h"

namespace tutti {

Mailbox::Mailbox(Communicator& communicator)
    : communicator_(communicator),
      windows_(communicator.process(), communicator.members(), waits_),
      peers_(static_cast<std::size_t>(communicator.ranks())) {
  const Channel& channel = communicator.links().channels().messages();
  for (std::size_t at = 0; at < peers_.size(); ++at)
    peers_[at] = {.sender = channel.senders[at].get(),
                  .receiver = channel.receivers[at].get(),
                  .remote = communicator.members().peers[at].remote()};
}

Mailbox& mailbox_of(Communicator& communicator) {
  BesideCalls& beside = communicator.beside_calls();
  if (beside.background() == nullptr) beside.attach(std::make_unique<Mailbox>(communicator));
  return static_cast<Mailbox&>(*beside.background());
}

/// A message to this rank itself is copied, at once or aside.
void Mailbox::start(const std::shared_ptr<Message>& message) {
  const std::lock_guard lock(mutex_);
  counts_.begin();
  if (!message->send) {
    if (Unexpected* const kept = matching_.kept_for(message->envelope)) return take(*kept, message);
    return matching_.post(message);
  }
  const MessageEnvelope& envelope = message->envelope;
  if (message->to != communicator_.rank()) {
    Peer& peer = peers_[message->to];
    const bool small = envelope.bytes <= PacketHeader::small_bytes_max;
    PacketHeader header = PacketHeader::of(small ? PacketKind::small : PacketKind::offer, envelope);
    if (!small) header.id = next_id_++;
    if (!small && !peer.remote) header.carried = best_carry(communicator_, message->to, message->data, header.bytes);
    return peer.outbox.send(message, header);
  }
  Unexpected aside{.from = message->to, .header = PacketHeader::of(PacketKind::small, envelope), .whole = true};
  if (envelope.bytes > 0) aside.data.assign(message->data, message->data + envelope.bytes);
  Unexpected& kept = matching_.add(std::move(aside));
  counts_.end(*message);
  if (const auto receive = matching_.receive_of(kept)) take(kept, receive);
}

/// A message that is too long, or of another type, fails the receive alone; it has been received all the same.
void Mailbox::take(Unexpected& unexpected, const std::shared_ptr<Message>& message) {
  const PacketHeader header = unexpected.header;
  const Rank from = unexpected.from;
  message->begun = true;
  const std::size_t space = message->envelope.bytes;
  const DataType type = message->envelope.type;
  message->envelope = unexpected.envelope();
  if (header.bytes > space || message->envelope.type != type)
    message->error =
        Error{.code = Code::invalid_usage,
              .what = fmt::format("rank {} sends {} x {} with tag {}, but rank {} receives at most {} x {}", from,
                                  header.bytes / size_of(message->envelope.type), name(message->envelope.type),
                                  header.tag, communicator_.rank(), space / size_of(type), name(type)),
              .peer = from};
  if (header.kind == PacketKind::offer) {
    Outbox& outbox = peers_[from].outbox;
    if (message->error) {
      outbox.reply(PacketKind::taken, header, message);
    } else {
      fetches_.push_back({.from = from, .header = header, .message = message});
      if (header.carried.carry == Carry::slots) outbox.reply(PacketKind::wanted, header);
    }
  } else if (!unexpected.whole) {
    unexpected.taken_by = message;  // closed by its last piece
    return;
  } else {
    if (!message->error && header.bytes > 0) std::memcpy(message->data, unexpected.data.data(), header.bytes);
    counts_.end(*message);
  }
  matching_.forget(unexpected);
}

/// The communicator has failed.
void Mailbox::fail_all(const Error& error) {
  const auto fail = [&](const std::shared_ptr<Message>& message) {
    if (!message || message->state.load() != Message::State::pending) return;
    message->error = error;
    counts_.end(*message);
  };
  matching_.visit(fail);
  for (const Fetch& fetch : fetches_) fail(fetch.message);
  for (Peer& peer : peers_) {
    peer.outbox.visit(fail);
    fail(peer.data_of);
    peer.reset();
  }
  matching_ = {};
  fetches_.clear();
}

/// A program that only tests its messages hears of ranks that are gone here.
bool Mailbox::progress() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;  // another thread is at it
  const std::uint64_t before = counts_.moves();
  constexpr unsigned fruitless_looks = 64;
  if (!communicator_.failed())
    if (auto advanced = advance(); !advanced) communicator_.fail(std::move(advanced).error());
  if (counts_.moves() == before && ++fruitless_ % fruitless_looks == 0 && !communicator_.failed())
    if (auto why = look()) communicator_.fail(*std::move(why));
  if (communicator_.failed()) fail_all(communicator_.failure().error());
  return counts_.moves() != before;
}

void Mailbox::close() {
  const std::lock_guard lock(mutex_);
  fail_all({.code = Code::invalid_usage, .what = "the communicator was destroyed before this message had ended"});
}

bool Mailbox::cancel(Message& message) {
  const std::lock_guard lock(mutex_);
  if (message.begun || message.state.load() != Message::State::pending) return false;
  if (message.send)
    peers_[message.to].outbox.cancel(message);
  else
    matching_.cancel(message);
  counts_.end(message, Message::State::cancelled);
  return true;
}

std::optional<MessageEnvelope> Mailbox::probe(Rank source, int tag) {
  const std::lock_guard lock(mutex_);
  const MessageEnvelope wanted{.source = source, .tag = tag};
  const Unexpected* found = matching_.kept_for(wanted);
  if (found == nullptr && !communicator_.failed()) {
    probing_ = source;
    if (auto advanced = advance(); !advanced) communicator_.fail(std::move(advanced).error());
    probing_ = nobody;
    found = matching_.kept_for(wanted);
  }
  if (found == nullptr) return std::nullopt;
  return found->envelope();
}

std::optional<MessageEnvelope> Mailbox::probe_to_the_end(Rank source, int tag) {
  auto found = probe(source, tag);
  if (found || communicator_.failed()) return found;
  std::optional<Error> last;
  {
    const std::lock_guard lock(mutex_);
    for (Rank rank = 0; rank < communicator_.ranks(); ++rank) {
      if (rank == communicator_.rank() || (source != MessageEnvelope::any && source != rank)) continue;
      last = gone(rank);
      if (!last) return std::nullopt;
    }
  }
  if (!last) return std::nullopt;  // the source is this rank
  found = probe(source, tag);      // it may have come before its source went
  if (!found && !communicator_.failed()) communicator_.fail(*std::move(last));
  return found;
}

/// Whether something may come from this rank that this one waits for.
bool Mailbox::wants(Rank rank) const {
  const Peer& peer = peers_[rank];
  if (needs(rank)) return true;
  if (peer.gone) return false;
  return peer.packet.begun() || probing_ == rank || probing_ == MessageEnvelope::any ||
         matching_.expects(MessageEnvelope::any);
}

/// Whether a message can only end with something from this rank, or on its way to it.
bool Mailbox::needs(Rank rank) const {
  const Peer& peer = peers_[rank];
  if (peer.outbox.holds_message() || peer.data_of || (peer.small != nullptr && peer.small->taken_by)) return true;
  if (std::ranges::any_of(fetches_, [&](const Fetch& fetch) { return fetch.from == rank; })) return true;
  return matching_.expects(rank);
}

std::optional<Error> Mailbox::gone(Rank rank) {
  Peer& peer = peers_[rank];
  if (peer.gone) return peer.gone;
  peer.stall.look(communicator_.process().system.now_ns(), coming(*peer.receiver));
  return obstacle(communicator_, rank, &peer.stall, [this] { return waits_where(); });
}

std::optional<Error> Mailbox::look_at_peers() {
  const std::lock_guard lock(mutex_);
  return look();
}

std::optional<Error> Mailbox::look() {
  std::optional<Error> last;
  bool anybody = false;
  for (Rank rank = 0; rank < communicator_.ranks(); ++rank) {
    if (rank == communicator_.rank()) continue;
    auto why = gone(rank);
    anybody = anybody || !why;
    if (!why) continue;
    // What it had sent may have come since the last advance.
    for (std::uint64_t before = counts_.moves() - 1; counts_.moves() != before;) {
      before = counts_.moves();
      TUTTI_TRY(exchange(rank));
    }
    if (needs(rank)) return why;
    last = std::move(why);
  }
  if (anybody || !matching_.expects(MessageEnvelope::any)) return std::nullopt;
  return last;
}

Rank Mailbox::peer_of(const Message& message) {
  const std::lock_guard lock(mutex_);
  if (message.send) return message.to;
  return message.envelope.source == MessageEnvelope::any ? any_rank : message.envelope.source;
}

std::string Mailbox::waits_where() const {
  if (const Message* const first = matching_.first_posted()) {
    const Rank source = first->envelope.source;
    return source == MessageEnvelope::any ? "a receive from any rank" : fmt::format("a receive from rank {}", source);
  }
  for (Rank rank = 0; rank < communicator_.ranks(); ++rank)
    if (peers_[rank].outbox.waits_for_peer()) return fmt::format("a send to rank {}", rank);
  return "messages";
}

}  // namespace tutti
