// Messages that wait to be sent: slots in private memory, and each socket's position in them.
#include <algorithm>
#include <cassert>

#include "transport/socket.h"

namespace tutti {
namespace {

/// Smaller amounts wait for the flush, which comes before this rank waits for anything, so that several messages leave
/// in one system call: a megabyte in pieces of 64 KB takes twice as long.
constexpr std::size_t send_at_once_bytes = 1 << 20;
/// Approximate limit of one system call.
constexpr std::size_t send_bytes_max = 1 << 20;
/// Limit of one message; further ones are copied into its slot.
constexpr std::size_t offers_max = 32;

}  // namespace

SocketSender::SocketSender(std::shared_ptr<SocketLink> link, int slots, std::size_t slot_bytes)
    : link_(std::move(link)),
      trailers_(link_->sent_trailers()),
      slot_bytes_(slot_bytes),
      messages_(static_cast<std::size_t>(slots)) {
  assert(slots >= 1 && slot_bytes >= 1);
  memory_.reserve(messages_.size());
  free_.reserve(messages_.size());
  for (Message& message : messages_) {
    message.offers.reserve(offers_max);
    message.trailers.resize(link_->size());
  }
  cursors_.resize(link_->size());
}

Result<std::span<std::byte>> SocketSender::acquire() {
  Message& next = message(committed_);
  if (!filling_) {
    if (free_.empty() && memory_.size() < messages_.size()) free_.push_back(memory_.emplace_back(slot_bytes_).data());
    if (free_.empty()) TUTTI_TRY(flush());
    if (free_.empty()) return std::span<std::byte>();
    filling_ = true;
    next.slot = free_.back();
    next.offers.clear();
    free_.pop_back();
  }
  return std::span(next.slot, slot_bytes_);
}

bool SocketSender::offer(std::size_t at, std::span<const std::byte> memory) {
  assert(filling_ && at + memory.size() <= slot_bytes_);
  auto& offers = message(committed_).offers;
  const auto next = std::ranges::find_if(offers, [at](const Offer& offer) { return offer.at >= at; });
  if (next != offers.end() && next->at == at) {
    next->memory = memory;
    return true;
  }
  if (offers.size() == offers_max) return false;
  offers.insert(next, {.at = at, .memory = memory});
  return true;
}

bool SocketSender::keep(std::span<const std::byte> memory) {
  for (std::uint64_t number = sent_; number != committed_ + (filling_ ? 1 : 0); ++number) {
    Message& waiting = message(number);
    std::erase_if(waiting.offers, [&](const Offer& offer) {
      if (!overlap(offer.memory, memory)) return false;
      if (!has_left(number, offer.at + offer.memory.size())) std::ranges::copy(offer.memory, waiting.slot + offer.at);
      return true;
    });
  }
  return true;
}

/// Whether all bytes of a message up to `end` have been sent.
bool SocketSender::has_left(std::uint64_t number, std::size_t end) const {
  if (number == committed_) return false;
  const Stripes cut = stripes(number);
  for (std::size_t socket = 0; socket < cursors_.size(); ++socket) {
    const Cursor cursor = after(socket, cursors_[socket], 0);
    if (cursor.message < number) return false;
    if (cursor.message > number || cursor.done >= cut.share(socket)) continue;
    if (cut.position(socket, cursor.done) < end) return false;
  }
  return true;
}

std::span<const std::byte> SocketSender::Message::part(std::size_t at, std::size_t most) const {
  for (const Offer& offer : offers) {
    if (offer.at + offer.memory.size() <= at) continue;
    if (offer.at > at) return {slot + at, std::min(most, offer.at - at)};
    const auto rest = offer.memory.subspan(at - offer.at);
    return rest.first(std::min(most, rest.size()));
  }
  return {slot + at, most};
}

/// An empty message travels as one byte, which tells the peer that its sender has reached this point.
Result<void> SocketSender::commit(std::size_t bytes) {
  assert(filling_ && bytes <= slot_bytes_);
  filling_ = false;
  Message& next = message(committed_);
  next.bytes = std::max<std::size_t>(bytes, 1);
  const std::size_t carriers = stripes(committed_).carriers();
  for (std::size_t socket = 0; socket < carriers; ++socket) next.trailers[socket] = trailers_.of(committed_, socket);
  ++committed_;
  waiting_bytes_ += next.bytes + carriers * trailer_bytes;
  if (waiting_bytes_ < send_at_once_bytes) return {};
  TUTTI_TRY(flush());
  return {};
}

/// Sends as much as each socket takes.
Result<bool> SocketSender::flush() {
  if (sent_ == committed_) return true;
  for (std::size_t socket = 0; socket < cursors_.size(); ++socket) {
    Cursor& cursor = cursors_[socket];
    cursor = after(socket, cursor, 0);
    for (bool takes_more = true; takes_more && cursor.message != committed_;) {
      std::span<const std::byte> pieces[System::send_pieces_max];
      const Collected all = collect(socket, cursor, pieces);
      auto sent = TUTTI_TRY(link_->send(socket, {pieces, all.pieces}));
      waiting_bytes_ -= sent;
      takes_more = sent == all.bytes;
      cursor = takes_more ? all.end : after(socket, cursor, sent);
    }
  }
  free_slots();
  return sent_ == committed_;
}

/// The socket's next pieces to send, starting at `from`, skipping messages of which it has no share left.
SocketSender::Collected SocketSender::collect(std::size_t socket, Cursor from,
                                              std::span<std::span<const std::byte>> pieces) const {
  Collected all{.end = from};
  while (all.end.message != committed_ && all.pieces + 1 < pieces.size() && all.bytes < send_bytes_max) {
    const Message& next = message(all.end.message);
    const Stripes cut = stripes(all.end.message);
    const std::size_t share = cut.share(socket), before = all.bytes;
    std::size_t done = all.end.done;
    const auto add = [&](std::span<const std::byte> piece) {
      pieces[all.pieces++] = piece;
      all.bytes += piece.size();
      done += piece.size();
    };
    if (done < share) add(next.part(cut.position(socket, done), cut.run(socket, done)));
    if (done >= share) add(std::as_bytes(std::span(&next.trailers[socket], 1)).subspan(done - share));
    all.end = after(socket, all.end, all.bytes - before);
  }
  return all;
}

/// Advances by the bytes of one or more messages, skipping messages of which the socket has no share left.
SocketSender::Cursor SocketSender::after(std::size_t socket, Cursor from, std::size_t moved) const {
  while (from.message != committed_) {
    const std::size_t left = stripes(from.message).carried(socket) - from.done;
    if (moved < left) break;
    moved -= left;
    from = {.message = from.message + 1};
  }
  from.done += moved;
  return from;
}

void SocketSender::free_slots() {
  std::uint64_t sent = committed_;
  for (const Cursor& cursor : cursors_) sent = std::min(sent, cursor.message);
  for (; sent_ != sent; ++sent_) free_.push_back(message(sent_).slot);
}

void SocketSender::poll_set(std::vector<PollItem>& items) const {
  for (std::size_t socket = 0; socket < cursors_.size(); ++socket)
    if (after(socket, cursors_[socket], 0).message != committed_)
      items.push_back({.handle = link_->socket(socket).handle(), .want_write = true});
}

}  // namespace tutti
