// Reads the one message that is asked for from all sockets, and a little of what follows it.
#include <algorithm>
#include <cassert>
#include <cstring>

#include <fmt/format.h>

#include "transport/socket.h"

namespace tutti {

SocketReceiver::SocketReceiver(std::shared_ptr<SocketLink> link, std::size_t slot_bytes)
    : link_(std::move(link)),
      trailers_(link_->received_trailers()),
      slot_bytes_(slot_bytes),
      memory_(std::max<std::size_t>(slot_bytes, 1)),
      done_(link_->size()),
      endings_(link_->size()) {
  stripes_ = link_->stripes(0);
}

Result<std::span<const std::byte>> SocketReceiver::peek(std::size_t bytes) {
  if (TUTTI_TRY(take_ahead(bytes))) return std::span<const std::byte>(memory_.data(), bytes);
  if (!TUTTI_TRY(open(bytes))) return std::span<const std::byte>();
  auto here = TUTTI_TRY(read(stripes_.bytes));
  return here == stripes_.bytes ? std::span<const std::byte>(memory_.data(), bytes) : std::span<const std::byte>();
}

Result<std::span<const std::byte>> SocketReceiver::expect(std::size_t bytes) {
  return TUTTI_TRY(open(bytes)) ? std::span<const std::byte>(memory_.data(), bytes) : std::span<const std::byte>();
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
  if (!complete_ && TUTTI_TRY(read(stripes_.bytes)) != stripes_.bytes) return false;
  begin(bytes);
  return true;
}

void SocketReceiver::begin(std::size_t bytes) {
  open_ = true;
  ++begun_;
  complete_ = false;
  bytes_ = bytes;
  stripes_ = link_->stripes(std::max<std::size_t>(bytes, 1));
  until_ = 0;
  std::ranges::fill(done_, 0);
}

/// True, and the message is open, if it arrived together with the one before: no system call is needed. This holds for
/// most small messages that follow their call's signature.
Result<bool> SocketReceiver::take_ahead(std::size_t bytes) {
  if (open_ || !complete_ || ahead_.size() < std::max<std::size_t>(bytes, 1) + trailer_bytes || bytes > slot_bytes_)
    return false;
  if (link_->stripes(bytes).striped()) return false;
  begin(bytes);
  landing_ = {};
  ahead_.take({memory_.data(), stripes_.bytes});
  ahead_.take(std::as_writable_bytes(std::span(&endings_.front(), 1)));
  done_.front() = stripes_.carried(0);
  until_ = stripes_.bytes;
  complete_ = true;
  TUTTI_TRY(check_trailer(0));
  return true;
}

/// The trailer of a socket's share of the open message, or else of the last one.
Result<void> SocketReceiver::check_trailer(std::size_t socket) const {
  const std::uint64_t number = begun_ - 1;
  if (endings_[socket] != trailers_.of(number, socket)) return link_->shifted(number, socket);
  return {};
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
  for (std::size_t socket = 0; socket < done_.size(); ++socket) {
    const std::size_t arrived = std::min(done_[socket], stripes_.share(socket));
    for (std::size_t done = 0; done < arrived;) {
      const std::size_t begin = stripes_.position(socket, done);
      const std::size_t run = std::min(stripes_.run(socket, done), arrived - done);
      const std::size_t from = std::max(begin, at), to = std::min(begin + run, at + into.size());
      if (from < to) std::memcpy(into.data() + (from - at), memory_.data() + from, to - from);
      done += run;
    }
  }
  landing_at_ = at;
  landing_ = into;
}

/// Position of a socket's next byte in the message; the end of the message if there is none. The last byte of a share
/// counts as missing until its trailer has come.
std::size_t SocketReceiver::next(std::size_t socket) const {
  const std::size_t done = done_[socket];
  if (done == stripes_.carried(socket)) return stripes_.bytes;
  return stripes_.position(socket, std::min(done, stripes_.share(socket) - 1));
}

/// Reads the message up to `until`, or as far as it has arrived; returns how much of it is here without a gap.
Result<std::size_t> SocketReceiver::read(std::size_t until) {
  until_ = until;
  std::size_t here = stripes_.bytes;
  for (std::size_t socket = 0; socket < done_.size(); ++socket) {
    TUTTI_TRY(read(socket, until));
    here = std::min(here, next(socket));
  }
  complete_ = here == stripes_.bytes;
  return here;
}

Result<void> SocketReceiver::read(std::size_t socket, std::size_t until) {
  const std::size_t share = stripes_.share(socket);
  const auto ending = std::as_writable_bytes(std::span(&endings_[socket], 1));
  bool dry = false;
  for (std::size_t at = next(socket); at < until && !dry; at = next(socket)) {
    std::size_t& done = done_[socket];
    std::span<std::byte> into;
    if (done < share) into = place(at, std::min(stripes_.run(socket, done), until - at));
    const std::size_t end = done + into.size();
    auto got =
        TUTTI_TRY(receive(socket, into, end < share ? std::span<std::byte>() : ending.subspan(end - share), dry));
    done += got;
    if (done != stripes_.carried(socket)) continue;
    TUTTI_TRY(check_trailer(socket));
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
Result<std::size_t> SocketReceiver::receive(std::size_t socket, std::span<std::byte> into, std::span<std::byte> trailer,
                                            bool& dry) {
  const std::size_t wanted = into.size() + trailer.size();
  if (socket == 0 && ahead_.is_for(stripes_.bytes)) {
    auto got = link_->receive(socket, ahead_.buffer());
    if (!got) return got;
    ahead_.filled(*got);
    dry = *got < wanted;
  }
  if (socket == 0 && ahead_.size() != 0) {
    const std::size_t taken = ahead_.take(into);
    return taken + (taken == into.size() ? ahead_.take(trailer) : 0);
  }
  if (dry) return std::size_t{0};
  auto got = link_->receive(socket, into, trailer);
  if (got) dry = *got < wanted;
  return got;
}

/// The next open, or `drained`, reads whatever has not arrived yet.
Result<void> SocketReceiver::release() {
  assert(open_);
  open_ = false;
  landing_ = {};
  return {};
}

Result<bool> SocketReceiver::drained() {
  if (open_ || complete_) return true;
  auto rest = read(stripes_.bytes);
  if (!rest && is_shifted(rest.error())) return std::move(rest).error();
  return !rest || *rest == stripes_.bytes;
}

void SocketReceiver::poll_set(std::vector<PollItem>& items) const {
  for (std::size_t socket = 0; socket < done_.size(); ++socket)
    if (next(socket) < until_) items.push_back({.handle = link_->socket(socket).handle(), .want_read = true});
}

}  // namespace tutti
