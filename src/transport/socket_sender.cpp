// What waits on the way out: slots in private memory, and how far each socket has come with them.
#include <algorithm>
#include <cassert>

#include "transport/socket.h"

namespace tutti {
namespace {

/// Less than this waits for the flush: several small messages then leave in one call.
constexpr std::size_t send_at_once_bytes = 16 * 1024;
/// One call to the system takes about so much at most.
constexpr std::size_t send_bytes_max = 1 << 20;

}  // namespace

SocketSender::SocketSender(std::shared_ptr<SocketLink> link, int slots, std::size_t slot_bytes)
    : link_(std::move(link)), slot_bytes_(slot_bytes), messages_(static_cast<std::size_t>(slots)) {
  assert(slots >= 1 && slot_bytes >= 1);
  memory_.reserve(messages_.size());
  free_.reserve(messages_.size());
  for (std::size_t i = 0; i < messages_.size(); ++i) free_.push_back(memory_.emplace_back(slot_bytes).data());
  cursors_.resize(link_->size());
}

Result<std::span<std::byte>> SocketSender::acquire() {
  if (filling_ == nullptr) {
    if (free_.empty())
      if (auto flushed = flush(); !flushed) return std::move(flushed).error();
    if (free_.empty()) return std::span<std::byte>();
    filling_ = free_.back();
    free_.pop_back();
  }
  return std::span(filling_, slot_bytes_);
}

/// An empty message travels as one byte: it says that its sender has come so far.
Result<void> SocketSender::commit(std::size_t bytes) {
  assert(filling_ != nullptr && bytes <= slot_bytes_);
  message(committed_) = {.bytes = std::max<std::size_t>(bytes, 1), .slot = std::exchange(filling_, nullptr)};
  waiting_bytes_ += message(committed_++).bytes;
  if (waiting_bytes_ < send_at_once_bytes) return {};
  if (auto flushed = flush(); !flushed) return std::move(flushed).error();
  return {};
}

Result<bool> SocketSender::flush() {
  if (sent_ == committed_) return true;
  for (std::size_t socket = 0; socket < cursors_.size(); ++socket)
    if (auto pushed = push(socket); !pushed) return std::move(pushed).error();
  free_slots();
  return sent_ == committed_;
}

/// As much as one socket takes. True: it has nothing left.
Result<bool> SocketSender::push(std::size_t socket) {
  Cursor& cursor = cursors_[socket];
  while (true) {
    cursor = after(socket, cursor, 0);
    if (cursor.message == committed_) return true;
    std::span<const std::byte> pieces[System::send_pieces_max];
    const std::size_t count = collect(socket, cursor, pieces);
    std::size_t bytes = 0;
    for (const auto piece : std::span(pieces, count)) bytes += piece.size();
    auto sent = link_->send(socket, {pieces, count});
    if (!sent) return std::move(sent).error();
    waiting_bytes_ -= *sent;
    cursor = after(socket, cursor, *sent);
    if (*sent < bytes) return false;
  }
}

/// What the socket has to send next, from `from` on; the number of pieces.
std::size_t SocketSender::collect(std::size_t socket, Cursor from, std::span<std::span<const std::byte>> pieces) const {
  std::size_t count = 0, bytes = 0;
  while (count < pieces.size() && bytes < send_bytes_max && from.message != committed_) {
    const Stripes cut = stripes(from.message);
    const std::size_t run = cut.run(socket, from.done);
    if (run > 0) pieces[count++] = {message(from.message).slot + cut.position(socket, from.done), run};
    bytes += run;
    from = after(socket, from, run);
  }
  return count;
}

/// Moves on by bytes of one or more messages, and past those of which the socket has no share left.
SocketSender::Cursor SocketSender::after(std::size_t socket, Cursor from, std::size_t moved) const {
  while (from.message != committed_) {
    const std::size_t left = stripes(from.message).share(socket) - from.done;
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

void SocketSender::interests(std::vector<PollItem>& items) const {
  for (std::size_t socket = 0; socket < cursors_.size(); ++socket)
    if (after(socket, cursors_[socket], 0).message != committed_)
      items.push_back({.handle = link_->handle(socket), .want_write = true});
}

}  // namespace tutti
