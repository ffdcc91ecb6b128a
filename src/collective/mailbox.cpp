// Which message goes to which receive.
#include "collective/mailbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "comm/peer_failure.h"

namespace tutti {
namespace {

constexpr std::size_t small_bytes_max = 16 * 1024;
constexpr int nobody = -2;  // see Mailbox::probing_
constexpr unsigned fruitless_looks = 64;

}  // namespace

Mailbox::Mailbox(Communicator& communicator)
    : communicator_(communicator),
      windows_(communicator.process(), communicator.members(), waits_),
      peers_(static_cast<std::size_t>(communicator.ranks())) {}

Mailbox& mailbox_of(Communicator& communicator) {
  if (communicator.background() == nullptr) communicator.attach(std::make_unique<Mailbox>(communicator));
  return static_cast<Mailbox&>(*communicator.background());
}

bool Mailbox::matches(const Message& receive, Rank from, const Header& header) {
  const MessageEnvelope& wanted = receive.envelope;
  return (wanted.source == MessageEnvelope::any || wanted.source == from) &&
         (wanted.tag == MessageEnvelope::any || wanted.tag == header.tag);
}

void Mailbox::start(const std::shared_ptr<Message>& message) {
  const std::lock_guard lock(mutex_);
  pending_.fetch_add(1, std::memory_order_acq_rel);
  if (message->send)
    send(message);
  else
    receive(message);
}

Mailbox::Header Mailbox::header_of(const Message& message) {
  Header header{.kind = Kind::small,
                .type = static_cast<std::uint32_t>(message.envelope.type),
                .tag = message.envelope.tag,
                .bytes = message.envelope.bytes};
  if (header.bytes <= small_bytes_max) return header;
  header.kind = Kind::offer;
  header.id = next_id_++;
  if (!remote(message.to)) header.carried = best_carry(communicator_, message.to, message.data, header.bytes);
  return header;
}

/// A message to this rank itself is copied, at once or aside.
void Mailbox::send(const std::shared_ptr<Message>& message) {
  if (message->to != communicator_.rank()) {
    Peer& peer = peers_[static_cast<std::size_t>(message->to)];
    Outgoing out{.header = header_of(*message), .message = message};
    if (out.header.kind == Kind::small) {
      out.payload = message->data;
      out.bytes = message->envelope.bytes;
    }
    peer.outbox.push_back(std::move(out));
    return;
  }
  Header header = header_of(*message);
  header.kind = Kind::small;
  Unexpected& aside = unexpected_.emplace_back(Unexpected{.from = message->to, .header = header});
  if (header.bytes > 0) aside.data.assign(message->data, message->data + header.bytes);
  aside.whole = true;
  kept_bytes_ += aside.kept_bytes();
  end(*message, Message::State::done);
  arrived(aside);
}

void Mailbox::receive(const std::shared_ptr<Message>& message) {
  for (Unexpected& aside : unexpected_) {
    if (aside.taken_by || !matches(*message, aside.from, aside.header)) continue;
    return take(aside, message);
  }
  posted_.push_back(message);
}

/// The header of a message has come: gives it to the first receive that matches it, if there is one.
void Mailbox::arrived(Unexpected& unexpected) {
  const auto receive = std::ranges::find_if(
      posted_, [&](const auto& posted) { return matches(*posted, unexpected.from, unexpected.header); });
  if (receive == posted_.end()) return;
  const std::shared_ptr<Message> message = std::move(*receive);
  posted_.erase(receive);
  take(unexpected, message);
}

/// A message that is too long, or of another type, fails the receive alone; it has been received all the same.
void Mailbox::take(Unexpected& unexpected, const std::shared_ptr<Message>& message) {
  const Header header = unexpected.header;
  const Rank from = unexpected.from;
  message->begun = true;
  const std::size_t space = message->envelope.bytes;
  const DataType type = message->envelope.type;
  message->envelope = {
      .source = from, .tag = header.tag, .bytes = header.bytes, .type = enumerator<DataType>(header.type).value()};
  if (header.bytes > space || message->envelope.type != type)
    message->error =
        Error{.code = Code::invalid_usage,
              .what = fmt::format("rank {} sends {} x {} with tag {}, but rank {} receives at most {} x {}", from,
                                  header.bytes / size_of(message->envelope.type), name(message->envelope.type),
                                  header.tag, communicator_.rank(), space / size_of(type), name(type)),
              .peer = from};
  if (header.kind == Kind::offer) {
    if (message->error) {
      reply(from, Kind::taken, header, message);
    } else {
      fetches_.push_back({.from = from, .header = header, .message = message});
      if (header.carried.carry == Carry::slots) reply(from, Kind::wanted, header);
    }
  } else if (!unexpected.whole) {
    unexpected.taken_by = message;  // closed by its last piece
    return;
  } else {
    if (!message->error && header.bytes > 0) std::memcpy(message->data, unexpected.data.data(), header.bytes);
    end(*message, message->error ? Message::State::failed : Message::State::done);
  }
  forget(unexpected);
}

void Mailbox::forget(const Unexpected& unexpected) {
  kept_bytes_ -= unexpected.kept_bytes();
  unexpected_.remove_if([&](const Unexpected& each) { return &each == &unexpected; });
}

void Mailbox::reply(Rank to, Kind kind, const Header& about, const std::shared_ptr<Message>& ends) {
  peers_[static_cast<std::size_t>(to)].outbox.push_back(
      {.header = {.kind = kind, .type = about.type, .tag = about.tag, .bytes = about.bytes, .id = about.id},
       .message = ends});
}

void Mailbox::end(Message& message, Message::State state) {
  ++moves_;
  message.state.store(state, std::memory_order_release);
  pending_.fetch_sub(1, std::memory_order_acq_rel);
}

/// The communicator has failed.
void Mailbox::fail_all(const Error& error) {
  const auto fail = [&](const std::shared_ptr<Message>& message) {
    if (!message || message->state.load() != Message::State::pending) return;
    message->error = error;
    end(*message, Message::State::failed);
  };
  std::ranges::for_each(posted_, fail);
  for (const Fetch& fetch : fetches_) fail(fetch.message);
  for (const Unexpected& aside : unexpected_) fail(aside.taken_by);
  for (Peer& peer : peers_) {
    for (const Outgoing& out : peer.outbox) fail(out.message);
    std::ranges::for_each(peer.unflushed, fail);
    for (const auto& [id, message] : peer.offered) fail(message);
    fail(peer.incoming.data_of);
    peer = {};
  }
  posted_.clear();
  fetches_.clear();
  unexpected_.clear();
  kept_bytes_ = 0;
}

/// A program that only tests its messages hears of ranks that are gone here.
bool Mailbox::progress() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;  // another thread is at it
  const std::uint64_t before = moves_;
  if (!communicator_.failed())
    if (auto advanced = advance(); !advanced) communicator_.fail(std::move(advanced).error());
  if (moves_ == before && ++fruitless_ % fruitless_looks == 0 && !communicator_.failed())
    if (auto why = look()) communicator_.fail(*std::move(why));
  if (communicator_.failed()) fail_all(communicator_.failure());
  return moves_ != before;
}

void Mailbox::close() {
  const std::lock_guard lock(mutex_);
  fail_all({.code = Code::invalid_usage, .what = "the communicator was destroyed before this message had ended"});
}

bool Mailbox::cancel(Message& message) {
  const std::lock_guard lock(mutex_);
  if (message.begun || message.state.load() != Message::State::pending) return false;
  const auto is_it = [&](const std::shared_ptr<Message>& each) { return each.get() == &message; };
  if (message.send)
    std::erase_if(peers_[static_cast<std::size_t>(message.to)].outbox,
                  [&](const Outgoing& out) { return is_it(out.message); });
  else
    std::erase_if(posted_, is_it);
  end(message, Message::State::cancelled);
  return true;
}

const Mailbox::Unexpected* Mailbox::kept_for(Rank source, int tag) const {
  const Message wanted{.send = false, .envelope = {.source = source, .tag = tag}};
  for (const Unexpected& aside : unexpected_)
    if (!aside.taken_by && matches(wanted, aside.from, aside.header)) return &aside;
  return nullptr;
}

std::optional<MessageEnvelope> Mailbox::probe(Rank source, int tag) {
  const std::lock_guard lock(mutex_);
  const Unexpected* found = kept_for(source, tag);
  if (found == nullptr && !communicator_.failed()) {
    probing_ = source;
    if (auto advanced = advance(); !advanced) communicator_.fail(std::move(advanced).error());
    probing_ = nobody;
    found = kept_for(source, tag);
  }
  if (found == nullptr) return std::nullopt;
  return MessageEnvelope{.source = found->from,
                         .tag = found->header.tag,
                         .bytes = found->header.bytes,
                         .type = enumerator<DataType>(found->header.type).value()};
}

std::optional<MessageEnvelope> Mailbox::probe_to_the_end(Rank source, int tag) {
  auto found = probe(source, tag);
  if (found || communicator_.failed()) return found;
  auto gone = silence_of(source);
  if (!gone) return std::nullopt;
  found = probe(source, tag);  // it may have come before its source went
  if (!found && !communicator_.failed()) communicator_.fail(*std::move(gone));
  return found;
}

/// Whether something may come from this rank that this one waits for.
bool Mailbox::wants(Rank rank) const {
  const Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (needs(rank)) return true;
  if (peer.gone) return false;
  return peer.incoming.begun || probing_ == rank || probing_ == MessageEnvelope::any || receives_from_anybody();
}

/// Whether a message can only end with something from this rank, or on its way to it.
bool Mailbox::needs(Rank rank) const {
  const Peer& peer = peers_[static_cast<std::size_t>(rank)];
  const auto has_message = [](const Outgoing& out) { return out.message != nullptr; };
  if (!peer.offered.empty() || !peer.unflushed.empty() || std::ranges::any_of(peer.outbox, has_message)) return true;
  const Incoming& incoming = peer.incoming;
  if (incoming.data_of || (incoming.small != nullptr && incoming.small->taken_by)) return true;
  if (std::ranges::any_of(fetches_, [&](const Fetch& fetch) { return fetch.from == rank; })) return true;
  return std::ranges::any_of(posted_, [&](const auto& receive) { return receive->envelope.source == rank; });
}

bool Mailbox::receives_from_anybody() const {
  return std::ranges::any_of(posted_,
                             [](const auto& receive) { return receive->envelope.source == MessageEnvelope::any; });
}

std::optional<Error> Mailbox::gone(Rank rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.gone) return peer.gone;
  peer.stall.look(communicator_.process().system.now_ns(), coming(receiver(rank)));
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
    for (std::uint64_t before = moves_ - 1; moves_ != before;) {
      before = moves_;
      TUTTI_TRY(exchange(rank));
    }
    if (needs(rank)) return why;
    last = std::move(why);
  }
  if (anybody || !receives_from_anybody()) return std::nullopt;
  return last;
}

std::optional<Error> Mailbox::silence_of(Rank source) {
  const std::lock_guard lock(mutex_);
  if (source == communicator_.rank()) return std::nullopt;
  std::optional<Error> last;
  for (Rank rank = 0; rank < communicator_.ranks(); ++rank) {
    if (rank == communicator_.rank() || (source != MessageEnvelope::any && source != rank)) continue;
    last = gone(rank);
    if (!last) return std::nullopt;
  }
  return last;
}

Rank Mailbox::peer_of(const Message& message) {
  const std::lock_guard lock(mutex_);
  if (message.send) return message.to;
  return message.envelope.source == MessageEnvelope::any ? any_rank : message.envelope.source;
}

std::string Mailbox::waits_where() const {
  if (!posted_.empty()) {
    const MessageEnvelope& wanted = posted_.front()->envelope;
    return wanted.source == MessageEnvelope::any ? "a receive from any rank"
                                                 : fmt::format("a receive from rank {}", wanted.source);
  }
  for (Rank rank = 0; rank < communicator_.ranks(); ++rank) {
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (!peer.outbox.empty() || !peer.offered.empty()) return fmt::format("a send to rank {}", rank);
  }
  return "messages";
}

}  // namespace tutti
