// Messages that arrive: what completions say, and the ring from which messages are read.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "transport/verbs/link.h"

namespace tutti::verbs {
namespace {

/// Some milliseconds.
constexpr int credit_looks = 100'000;

std::uint32_t host_order(std::uint32_t value) {
  return std::endian::native == std::endian::little ? __builtin_bswap32(value) : value;
}

}  // namespace

void Link::complete(const Completion& completion) {
  const WorkWord word{static_cast<std::uint32_t>(completion.wr_id)};
  if (completion.status != Status::success) {
    if (completion.status != Status::flushed || !error_)
      fail(broken(fmt::format(
          "{} (status {}){}", text(endpoint_->library(), completion.status), static_cast<int>(completion.status),
          completion.status == Status::window_bind_error ? "; TUTTI_IB_MEMORY_WINDOWS=0 does without memory windows"
                                                         : "")));
    return;
  }
  if (error_ || word.queue() >= queues_.size()) return;
  QueuePair& queue = *queues_[word.queue()];
  if (!word.is_receive()) return queue.complete(word);
  receive(queue.used_receive(completion));
}

/// All numbers are the peer's: checked before they are used.
void Link::receive(const Completion& completion) {
  const Immediate immediate = Immediate::unpack(host_order(completion.immediate));
  const bool right = (completion.wc_flags & with_immediate) != 0 && immediate.credits <= committed_ - freed_by_peer_ &&
                     (immediate.is_invitation() ? take_invitation(immediate.message)
                                                : immediate.credit_only || place(immediate, completion.byte_len));
  if (!right) return fail(broken("a message came that cannot be"));
  freed_by_peer_ += immediate.credits;
  grant();
  // Credits alone are the only writes that no message of this direction must follow.
  if (immediate.credit_only && !immediate.packed) (void)post_receives();
}

/// False: such a piece cannot come now.
bool Link::place(const Immediate& immediate, std::size_t bytes) {
  const std::uint32_t ahead =
      (immediate.message - static_cast<std::uint32_t>(granted_ % Immediate::messages)) % Immediate::messages;
  if (ahead >= shape_.ring_slots() || immediate.piece > immediate.last) return false;
  if (immediate.packed) return !immediate.direct && unpack(granted_ + ahead, bytes);
  Arriving& message = arriving(granted_ + ahead);
  std::size_t room = shape_.slot_bytes;
  if (immediate.direct) {
    const Invitation* const invitation = invitation_of(granted_ + ahead);
    if (invitation == nullptr) return false;
    room = invitation->memory.size();
  }
  const std::uint32_t bit = 1u << immediate.piece;
  const bool fits = immediate.piece == immediate.last ? bytes <= shape_.piece_bytes() : bytes == shape_.piece_bytes();
  const bool is_next = message.pieces == 0 || (message.last == immediate.last && message.direct == immediate.direct);
  if (!fits || message.bytes + bytes > room || (message.pieces & bit) != 0 || !is_next) return false;
  message.pieces |= bit;
  message.direct = immediate.direct;
  message.last = immediate.last;
  message.bytes += bytes;
  return true;
}

/// The messages of one write, of which `last` is the last. The peer could change them while they are read, so each word
/// is read once.
bool Link::unpack(std::uint64_t last, std::size_t bytes) {
  std::array<std::uint32_t, QueuePair::pieces_max> header{};
  const std::byte* const from = ring_slot(last);
  std::memcpy(header.data(), from, std::min(bytes, sizeof header));
  const std::size_t count = header[0];
  if (count < 2 || count >= header.size() || count > last + 1 - granted_) return false;
  std::size_t at = packed_header(count);
  for (std::size_t i = 0; i < count; ++i) {
    Arriving& message = arriving(last + 1 - count + i);
    const std::size_t length = header[i + 1];
    if (message.pieces != 0 || length > small_bytes) return false;
    message = {.pieces = 1, .last = 0, .bytes = length, .at = from + at};
    at += length;
  }
  return at == bytes && bytes <= shape_.slot_bytes;
}

std::byte* Link::ring_slot(std::uint64_t message) const {
  return ring_->data() + message % shape_.ring_slots() * shape_.slot_bytes;
}

/// Without its credits the peer may be unable to send what this rank waits for.
void Link::look() {
  endpoint_->poll();
  // An error shows in what follows.
  if (!error_ && std::ranges::any_of(queues_, [](const auto& queue) { return queue->waiting(); })) (void)flush();
  if (!error_) (void)report_credits();
}

Result<std::span<const std::byte>> Link::peek(std::size_t /*bytes*/) {
  // If the slot still belongs to a message that was released before all of it was here, nothing of this one is here.
  const auto is_here = [&] { return has_space_for_next() && arriving(taken_).complete(); };
  if (!is_here()) look();
  wants_message_ = !is_here();
  if (!wants_message_) return std::span<const std::byte>(data_of(taken_), arriving(taken_).bytes);
  if (error_) return *error_;
  return std::span<const std::byte>();
}

Result<std::span<const std::byte>> Link::expect(std::size_t bytes) {
  if (bytes > shape_.slot_bytes)
    return Error{.code = Code::internal,
                 .what = fmt::format("a message of {} bytes for a slot of {}", bytes, shape_.slot_bytes)};
  if (bytes <= small_bytes) return peek(bytes);  // where it lies is known when it is here
  if (!has_space_for_next()) look();
  wants_message_ = !has_space_for_next();
  if (!wants_message_) return std::span<const std::byte>(ring_slot(taken_), bytes);
  if (error_) return *error_;
  return std::span<const std::byte>();
}

Result<std::size_t> Link::arrived(std::size_t at, std::size_t bytes) {
  const Arriving& message = arriving(taken_);
  const auto here = [&] {
    std::size_t end = at;
    while (end < at + bytes && (message.pieces >> (end / shape_.piece_bytes()) & 1) != 0)
      end = std::min(at + bytes, (end / shape_.piece_bytes() + 1) * shape_.piece_bytes());
    return end - at;
  };
  std::size_t found = here();
  if (found < bytes) {
    look();
    found = here();
  }
  wants_message_ = found < bytes;
  if (found < bytes && error_) return *error_;  // whoever has a part of it waits for the rest
  if (message.complete() && message.bytes < at + bytes)
    return Error{
        .code = Code::remote,
        .what = fmt::format("{} sent {} bytes where at least {} were expected", peer_name_, message.bytes, at + bytes),
        .peer = peer_};
  return found;
}

Result<std::size_t> Link::land(std::size_t at, std::span<std::byte> into) {
  if (landing_ != into.data() || landed_at_ != at) {
    landing_ = into.data();
    landed_at_ = at;
    landed_ = 0;
  }
  auto here = arrived(at, into.size());
  if (!here) return here;
  if (arriving(taken_).direct) {
    if (at == 0 && into.data() == invitation_of(taken_)->memory.data()) return here;
    return Error{.code = Code::internal, .what = "a message is received elsewhere than where it was invited to"};
  }
  if (*here > landed_) std::copy_n(data_of(taken_) + at + landed_, *here - landed_, into.data() + landed_);
  landed_ = *here;
  return here;
}

Result<void> Link::release() {
  ++taken_;
  wants_message_ = false;
  landing_ = nullptr;
  grant();
  if (error_) return {};  // the next message tells
  return report_credits();
}

/// Slots of messages that were released and are complete are free, in order.
void Link::grant() {
  for (; granted_ < taken_ && arriving(granted_).complete(); ++granted_, ++owed_) arriving(granted_) = {};
  close_windows();
}

/// A rank that only receives sends no messages that could carry the credits.
Result<void> Link::report_credits() {
  if (owed_ < shape_.ring_slots() / 2) return {};
  TUTTI_TRY(post_receives());
  QueuePair& queue = *queues_.front();
  // Nobody may look at this link for long after this, while the peer waits for a slot. The completions that make space
  // need the devices alone, so they are waited for a moment; if a device does not answer, the next look reports.
  for (int looks = 0; queue.space() == 0 && looks < credit_looks; ++looks) endpoint_->poll();
  if (queue.space() == 0 || error_) return {};
  queue.add({.memory = {},
             .remote_address = to_.ring,
             .rkey = to_.rkey,
             .immediate = Immediate{.credit_only = true, .credits = take_credits()}.pack(),
             .is_inline = true});
  ++credit_messages_;
  TUTTI_TRY(flush());
  return {};
}

Result<void> Link::post_receives() {
  for (auto& queue : queues_)
    if (auto posted = queue->post_receives(); !posted) {
      fail(refused_here(posted.error()));
      return *error_;
    }
  return {};
}

void Link::poll_set_to_receive(std::vector<PollItem>& items) const {
  if (wants_message_ || wants_closed_) endpoint_->poll_set(items);
}

}  // namespace tutti::verbs
