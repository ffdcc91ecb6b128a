// Messages that arrive: the ring from which they are read, and the memory to which they are invited.
#include <algorithm>

#include <fmt/format.h>

#include "transport/verbs/link.h"

namespace tutti::verbs {
namespace {

/// Some milliseconds.
constexpr int credit_looks = 100'000;

}  // namespace

Incoming::Incoming(LinkQueues& queues, Outgoing& out, const LinkShape& shape, const std::byte* ring)
    : queues_(queues), out_(out), shape_(shape), arrivals_(shape, ring), invitations_(queues, shape) {}

bool Incoming::place(const Immediate& immediate, std::size_t bytes) {
  const auto number = arrivals_.number_of(immediate.message);
  if (!number || immediate.piece > immediate.last) return false;
  if (immediate.packed) return !immediate.direct && arrivals_.unpack(*number, bytes);
  std::size_t room = shape_.slot_bytes;
  if (immediate.direct) {
    const auto* const invitation = invitations_.of(*number);
    if (invitation == nullptr) return false;
    room = invitation->memory.size();
  }
  return arrivals_.place(*number, immediate, bytes, room);
}

void Incoming::grant() {
  queues_.owe(arrivals_.grant());
  invitations_.close(arrivals_.granted());
}

/// Without its credits the peer may be unable to send what this rank waits for.
void Incoming::look() {
  queues_.endpoint().poll();
  // An error shows in what follows.
  if (!queues_.error() && queues_.have_waiting()) (void)out_.flush();
  if (!queues_.error()) (void)report_credits();
}

Result<std::span<const std::byte>> Incoming::peek(std::size_t /*bytes*/) {
  const std::uint64_t next = arrivals_.taken();
  const auto is_here = [&] { return arrivals_.has_space_for_next() && arrivals_[next].complete(); };
  if (!is_here()) look();
  wants_message_ = !is_here();
  if (!wants_message_) return std::span<const std::byte>(arrivals_.data(next), arrivals_[next].bytes);
  if (queues_.error()) return *queues_.error();
  return std::span<const std::byte>();
}

Result<std::span<const std::byte>> Incoming::expect(std::size_t bytes) {
  if (bytes > shape_.slot_bytes)
    return Error{.code = Code::internal,
                 .what = fmt::format("a message of {} bytes for a slot of {}", bytes, shape_.slot_bytes)};
  if (bytes <= small_bytes) return peek(bytes);  // where it lies is known when it is here
  if (!arrivals_.has_space_for_next()) look();
  wants_message_ = !arrivals_.has_space_for_next();
  if (!wants_message_) return std::span<const std::byte>(arrivals_.slot(arrivals_.taken()), bytes);
  if (queues_.error()) return *queues_.error();
  return std::span<const std::byte>();
}

Result<std::size_t> Incoming::arrived(std::size_t at, std::size_t bytes) {
  std::size_t found = arrivals_.here(at, bytes);
  if (found < bytes) {
    look();
    found = arrivals_.here(at, bytes);
  }
  wants_message_ = found < bytes;
  if (found < bytes && queues_.error()) return *queues_.error();  // whoever has a part of it waits for the rest
  const Arrivals::Message& message = arrivals_[arrivals_.taken()];
  if (message.complete() && message.bytes < at + bytes)
    return remote_error(
        fmt::format("{} sent {} bytes where at least {} were expected", queues_.peer().name, message.bytes, at + bytes),
        queues_.peer().rank);
  return found;
}

Result<std::size_t> Incoming::land(std::size_t at, std::span<std::byte> into) {
  if (landing_ != into.data() || landed_at_ != at) {
    landing_ = into.data();
    landed_at_ = at;
    landed_ = 0;
  }
  auto here = arrived(at, into.size());
  if (!here) return here;
  const std::uint64_t next = arrivals_.taken();
  if (arrivals_[next].direct) {
    if (at == 0 && into.data() == invitations_.of(next)->memory.data()) return here;
    return Error{.code = Code::internal, .what = "a message is received elsewhere than where it was invited to"};
  }
  if (*here > landed_) std::copy_n(arrivals_.data(next) + at + landed_, *here - landed_, into.data() + landed_);
  landed_ = *here;
  return here;
}

Result<void> Incoming::release() {
  arrivals_.take();
  wants_message_ = false;
  landing_ = nullptr;
  grant();
  if (queues_.error()) return {};  // the next message tells
  return report_credits();
}

/// A rank that only receives sends no messages that could carry the credits.
Result<void> Incoming::report_credits() {
  if (queues_.owed() < shape_.ring_slots() / 2) return {};
  TUTTI_TRY(queues_.post_receives());
  QueuePair& queue = *queues_.all().front();
  // Nobody may look at this link for long after this, while the peer waits for a slot. The completions that make space
  // need the devices alone, so they are waited for a moment; if a device does not answer, the next look reports.
  for (int looks = 0; queue.space() == 0 && looks < credit_looks; ++looks) queues_.endpoint().poll();
  if (queue.space() == 0 || queues_.error()) return {};
  const Destination to = queues_.in_ring(0);
  queues_.add(queue, {.memory = {}, .remote_address = to.address, .rkey = to.key, .is_inline = true},
              {.credit_only = true});
  ++credit_messages_;
  TUTTI_TRY(out_.flush());
  return {};
}

Invited Incoming::invite(std::size_t ahead, std::span<std::byte> memory) {
  const std::uint64_t number = arrivals_.taken() + ahead;
  if (queues_.error() || !queues_.opens_windows() || memory.empty() || memory.size() > shape_.slot_bytes)
    return Invited::no;
  if (number - arrivals_.granted() >= shape_.ring_slots()) return Invited::later;
  if (arrivals_[number].pieces != 0 || invitations_.of(number) != nullptr) return Invited::no;
  invitations_.close(arrivals_.granted());
  if (invitations_.may_give(number)) return invitations_.give(number, memory) ? Invited::yes : Invited::no;
  (void)out_.flush();  // what closes the window
  queues_.endpoint().poll();
  return queues_.error() ? Invited::no : Invited::later;
}

bool Incoming::closed() {
  const auto all_closed = [&] { return invitations_.all_closed(arrivals_.taken()); };
  if (queues_.error() || all_closed()) return true;
  invitations_.close(arrivals_.granted());
  (void)out_.flush();  // an error closes them, too
  queues_.endpoint().poll();
  wants_closed_ = !queues_.error() && !all_closed();
  return !wants_closed_;
}

void Incoming::poll_set(std::vector<PollItem>& items) const {
  if (wants_message_ || wants_closed_) queues_.endpoint().poll_set(items);
}

}  // namespace tutti::verbs
