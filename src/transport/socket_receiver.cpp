// What comes in: the one message that is asked for, from all sockets, and a little of what follows it.
#include <algorithm>
#include <cassert>
#include <cstring>

#include <fmt/format.h>

#include "transport/socket.h"

namespace tutti {

SocketReceiver::SocketReceiver(std::shared_ptr<SocketLink> link, std::size_t slot_bytes)
    : link_(std::move(link)),
      slot_bytes_(slot_bytes),
      memory_(slot_bytes),
      done_(link_->size()),
      ahead_(new std::byte[ahead_bytes]) {}

Result<std::span<const std::byte>> SocketReceiver::peek(std::size_t bytes) {
  if (!open_) {
    if (bytes > slot_bytes_)
      return Error{.code = Code::internal,
                   .what = fmt::format("a message of {} bytes for a slot of {}", bytes, slot_bytes_)};
    open(bytes);
  }
  assert(bytes == bytes_);
  bool all = true;
  for (std::size_t socket = 0; socket < done_.size(); ++socket) {
    if (complete(socket)) continue;
    if (auto moved = read(socket); !moved) return std::move(moved).error();
    all = all && complete(socket);
  }
  return all ? std::span<const std::byte>(memory_.data(), bytes) : std::span<const std::byte>();
}

/// An empty message travels as one byte.
void SocketReceiver::open(std::size_t bytes) {
  open_ = true;
  bytes_ = bytes;
  stripes_ = link_->stripes(std::max<std::size_t>(bytes, 1));
  std::ranges::fill(done_, 0);
}

/// As much of the open message as one socket has.
Result<void> SocketReceiver::read(std::size_t socket) {
  bool dry = false;
  while (!complete(socket) && !dry) {
    const std::size_t run = stripes_.run(socket, done_[socket]);
    auto got = receive(socket, {memory_.data() + stripes_.position(socket, done_[socket]), run}, dry);
    if (!got) return std::move(got).error();
    done_[socket] += *got;
  }
  return {};
}

/// Small reads take what follows along: one call to the system serves several small messages. `dry`: the kernel had
/// less than was asked for, so asking again would be for nothing.
Result<std::size_t> SocketReceiver::receive(std::size_t socket, std::span<std::byte> into, bool& dry) {
  if (socket == 0 && ahead_begin_ == ahead_end_ && into.size() < ahead_bytes) {
    auto got = link_->receive(socket, {ahead_.get(), ahead_bytes});
    if (!got) return got;
    ahead_begin_ = 0;
    ahead_end_ = *got;
    dry = *got < into.size();
  }
  if (socket == 0 && ahead_begin_ != ahead_end_) {
    const std::size_t taken = std::min(into.size(), ahead_end_ - ahead_begin_);
    std::memcpy(into.data(), ahead_.get() + ahead_begin_, taken);
    ahead_begin_ += taken;
    return taken;
  }
  if (dry) return std::size_t{0};
  auto got = link_->receive(socket, into);
  if (got) dry = *got < into.size();
  return got;
}

Result<void> SocketReceiver::release() {
  assert(open_);
  for (std::size_t socket = 0; socket < done_.size(); ++socket) assert(complete(socket));
  open_ = false;
  return {};
}

void SocketReceiver::interests(std::vector<PollItem>& items) const {
  for (std::size_t socket = 0; socket < done_.size(); ++socket)
    if (open_ && !complete(socket)) items.push_back({.handle = link_->handle(socket), .want_read = true});
}

}  // namespace tutti
