// Reads the one message that is asked for from all sockets, and a little of what follows it.
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
      ahead_(new std::byte[ahead_bytes]) {
  stripes_ = link_->stripes(0);
}

Result<std::span<const std::byte>> SocketReceiver::peek(std::size_t bytes) {
  if (take_ahead(bytes)) return std::span<const std::byte>(memory_.data(), bytes);
  auto opened = open(bytes);
  if (!opened) return std::move(opened).error();
  if (!*opened) return std::span<const std::byte>();
  auto here = read(stripes_.bytes);
  if (!here) return std::move(here).error();
  return *here == stripes_.bytes ? std::span<const std::byte>(memory_.data(), bytes) : std::span<const std::byte>();
}

Result<std::span<const std::byte>> SocketReceiver::expect(std::size_t bytes) {
  auto opened = open(bytes);
  if (!opened) return std::move(opened).error();
  return *opened ? std::span<const std::byte>(memory_.data(), bytes) : std::span<const std::byte>();
}

/// False while the previous message has not arrived completely. An empty message travels as one byte.
Result<bool> SocketReceiver::open(std::size_t bytes) {
  if (open_) {
    assert(bytes == bytes_);
    return true;
  }
  if (bytes > slot_bytes_)
    return Error{.code = Code::internal,
                 .what = fmt::format("a message of {} bytes for a slot of {}", bytes, slot_bytes_)};
  landing_ = {};
  if (!complete_) {
    auto rest = read(stripes_.bytes);
    if (!rest) return std::move(rest).error();
    if (*rest != stripes_.bytes) return false;
  }
  begin(bytes);
  return true;
}

void SocketReceiver::begin(std::size_t bytes) {
  open_ = true;
  complete_ = false;
  bytes_ = bytes;
  stripes_ = link_->stripes(std::max<std::size_t>(bytes, 1));
  until_ = 0;
  std::ranges::fill(done_, 0);
}

/// True, and the message is open, if it arrived together with the one before: no system call is needed. This holds for
/// most small messages that follow their call's signature.
bool SocketReceiver::take_ahead(std::size_t bytes) {
  const std::size_t here = ahead_end_ - ahead_begin_;
  if (open_ || !complete_ || here < std::max<std::size_t>(bytes, 1) || bytes > slot_bytes_) return false;
  if (link_->stripes(bytes).striped()) return false;
  begin(bytes);
  landing_ = {};
  std::memcpy(memory_.data(), ahead_.get() + ahead_begin_, stripes_.bytes);
  ahead_begin_ += stripes_.bytes;
  done_.front() = until_ = stripes_.bytes;
  complete_ = true;
  return true;
}

Result<std::size_t> SocketReceiver::arrived(std::size_t at, std::size_t bytes) {
  assert(open_ && at + bytes <= bytes_);
  landing_ = {};
  auto here = read(at + bytes);
  if (!here) return here;
  return std::clamp(*here, at, at + bytes) - at;
}

Result<std::size_t> SocketReceiver::land(std::size_t at, std::span<std::byte> into) {
  assert(open_ && at + into.size() <= bytes_);
  if (landing_.data() != into.data() || landing_at_ != at) begin_landing(at, into);
  auto here = read(at + into.size());
  if (!here) return here;
  return std::clamp(*here, at, at + into.size()) - at;
}

/// The part that has already arrived lies in the slot.
void SocketReceiver::begin_landing(std::size_t at, std::span<std::byte> into) {
  for (std::size_t socket = 0; socket < done_.size(); ++socket)
    for (std::size_t done = 0; done < done_[socket];) {
      const std::size_t begin = stripes_.position(socket, done);
      const std::size_t run = std::min(stripes_.run(socket, done), done_[socket] - done);
      const std::size_t from = std::max(begin, at), to = std::min(begin + run, at + into.size());
      if (from < to) std::memcpy(into.data() + (from - at), memory_.data() + from, to - from);
      done += run;
    }
  landing_at_ = at;
  landing_ = into;
}

/// Position of a socket's next byte in the message; the end of the message if there is none.
std::size_t SocketReceiver::next(std::size_t socket) const {
  return done_[socket] == stripes_.share(socket) ? stripes_.bytes : stripes_.position(socket, done_[socket]);
}

/// Reads the message up to `until`, or as far as it has arrived; returns how much of it is here without a gap.
Result<std::size_t> SocketReceiver::read(std::size_t until) {
  until_ = until;
  std::size_t here = stripes_.bytes;
  for (std::size_t socket = 0; socket < done_.size(); ++socket) {
    if (auto got = read(socket, until); !got) return std::move(got).error();
    here = std::min(here, next(socket));
  }
  complete_ = here == stripes_.bytes;
  return here;
}

Result<void> SocketReceiver::read(std::size_t socket, std::size_t until) {
  bool dry = false;
  for (std::size_t at = next(socket); at < until && !dry; at = next(socket)) {
    const std::size_t run = std::min(stripes_.run(socket, done_[socket]), until - at);
    auto got = receive(socket, place(at, run), dry);
    if (!got) return std::move(got).error();
    done_[socket] += *got;
  }
  return {};
}

/// The destination of bytes of the message, at most `bytes` of them.
std::span<std::byte> SocketReceiver::place(std::size_t at, std::size_t bytes) const {
  const std::size_t end = landing_at_ + landing_.size();
  if (at >= landing_at_ && at < end) return landing_.subspan(at - landing_at_, std::min(bytes, end - at));
  const std::size_t before = at < landing_at_ && !landing_.empty() ? landing_at_ - at : bytes;
  return {memory_.data() + at, std::min(bytes, before)};
}

/// The read of a small message also takes what follows, so that one system call serves several small messages. Not
/// where a large one follows, whose bytes would be copied once more. `dry`: the kernel had less than requested, so
/// another read would return nothing.
Result<std::size_t> SocketReceiver::receive(std::size_t socket, std::span<std::byte> into, bool& dry) {
  if (socket == 0 && ahead_begin_ == ahead_end_ && reads_ahead_ && stripes_.bytes < ahead_bytes) {
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

/// The next open reads whatever has not arrived yet.
Result<void> SocketReceiver::release() {
  assert(open_);
  open_ = false;
  landing_ = {};
  return {};
}

void SocketReceiver::poll_set(std::vector<PollItem>& items) const {
  for (std::size_t socket = 0; socket < done_.size(); ++socket)
    if (next(socket) < until_) items.push_back({.handle = link_->handle(socket), .want_read = true});
}

}  // namespace tutti
