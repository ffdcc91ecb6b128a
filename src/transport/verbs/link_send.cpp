// Messages on their way out: slots, offered blocks, and the writes that carry them.
#include <algorithm>
#include <cassert>
#include <functional>
#include <utility>

#include "transport/verbs/link.h"

namespace tutti::verbs {
namespace {

/// Smaller amounts wait for the flush, so that several small messages are posted in one call.
constexpr std::size_t post_at_once_bytes = 16 * 1024;
/// The receiver of as much may have invited the message meanwhile.
constexpr std::size_t look_bytes = 4096;

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::less<>()(a.data(), b.data() + b.size()) && std::less<>()(b.data(), a.data() + a.size());
}

}  // namespace

/// True as well for a message that is sent inline, or not yet committed.
bool Link::was_read(const Sending& message) const {
  for (std::size_t i = 0; i < queues_.size(); ++i)
    if (static_cast<std::int32_t>(queues_[i]->completed() - message.marks[i]) < 0) return false;
  return true;
}

/// A slot here, one at the peer, and space for all pieces and a report of credits on each queue pair.
bool Link::may_send() const {
  if (committed_ - freed_by_peer_ >= shape_.ring_slots() || committed_ - posted_ >= sending_.size() ||
      !was_read(sending_[committed_ % sending_.size()]))
    return false;
  return std::ranges::all_of(queues_, [&](const auto& queue) { return queue->space() >= space_needed(); });
}

Result<std::span<std::byte>> Link::acquire() {
  if (!filling_ && !may_send()) {
    endpoint_->poll();
    TUTTI_TRY(flush());
    wants_slot_ = !may_send();
    if (wants_slot_) return std::span<std::byte>();
  }
  if (error_) return *error_;
  if (!filling_) sending(committed_).offers.clear();
  filling_ = true;
  wants_slot_ = false;
  return std::span(slots_->data() + committed_ % sending_.size() * shape_.slot_bytes, shape_.slot_bytes);
}

std::uint32_t Link::take_credits() {
  return std::exchange(owed_, 0);
}

bool Link::offer(std::size_t at, std::span<const std::byte> memory) {
  assert(filling_ && at + memory.size() <= shape_.slot_bytes);
  if (endpoint_->registrations() == nullptr) return false;
  auto& offers = sending(committed_).offers;
  std::erase_if(offers, [at](const Offer& offer) { return offer.at == at; });
  // The pieces of a write are offers and what lies between them.
  if (2 * (offers.size() + 1) + 1 > QueuePair::pieces_of(endpoint_->port)) return false;
  const Mr* const mr = endpoint_->registrations()->find(memory);
  if (mr == nullptr) return false;
  const auto next = std::ranges::find_if(offers, [at](const Offer& offer) { return offer.at > at; });
  offers.insert(next, {.at = at, .memory = memory, .key = mr->lkey});
  return true;
}

/// The device needs nobody's help to read the rest, so there is no need to copy it.
bool Link::keep(std::span<const std::byte> memory) {
  const auto touches = [&](const Offer& offer) { return overlap(offer.memory, memory); };
  for (std::uint64_t number = read_; number != committed_ + (filling_ ? 1 : 0); ++number) {
    Sending& message = sending(number);
    if (std::ranges::none_of(message.offers, touches)) continue;
    if (number == committed_) {
      for (const Offer& offer : message.offers)
        if (touches(offer))
          std::ranges::copy(offer.memory, slots_->data() + number % sending_.size() * shape_.slot_bytes + offer.at);
      std::erase_if(message.offers, touches);
    } else if (!was_read(message)) {
      (void)flush();  // an error shows below
      if (!was_read(message)) return error_.has_value();
    }
  }
  return true;
}

bool Link::offers_were_read() {
  while (read_ != committed_ && (sending(read_).offers.empty() || was_read(sending(read_)))) ++read_;
  return read_ == committed_;
}

/// The memory of bytes [from, to) of a message: slot and offers in turn.
std::uint32_t Link::gather(std::uint64_t number, std::size_t from, std::size_t to, std::span<Sge> pieces) const {
  const std::size_t slot = number % sending_.size();
  std::uint32_t count = 0;
  const auto add = [&](const std::byte* memory, std::size_t bytes, std::uint32_t key) {
    if (bytes > 0)
      pieces[count++] = {
          .addr = reinterpret_cast<std::uint64_t>(memory), .length = static_cast<std::uint32_t>(bytes), .lkey = key};
  };
  const auto fill = [&](std::size_t end) {
    if (from < end) add(slots_->data() + slot * shape_.slot_bytes + from, end - from, slots_->lkey());
    from = std::max(from, end);
  };
  for (const Offer& offer : sending_[slot].offers) {
    const std::size_t end = offer.at + offer.memory.size();
    if (end <= from || offer.at >= to) continue;
    fill(std::max(from, offer.at));
    add(offer.memory.data() + (from - offer.at), std::min(end, to) - from, offer.key);
    from = std::min(end, to);
  }
  fill(to);
  return count;
}

Result<void> Link::commit(std::size_t bytes) {
  assert(filling_ && bytes <= shape_.slot_bytes);
  if (bytes >= look_bytes) endpoint_->poll();
  if (error_) return *error_;
  if (owed_ > 0 || std::exchange(invited_, false)) TUTTI_TRY(post_receives());
  filling_ = false;
  const bool is_small = bytes <= small_bytes && sending(committed_).offers.empty();
  if (!is_small || !packs(bytes)) send_packed();
  sending(committed_++).bytes = bytes;
  if (is_small) {
    ++small_;
    small_total_ += bytes;
  } else {
    send(committed_ - 1);
  }
  waiting_bytes_ += bytes;
  if (waiting_bytes_ < post_at_once_bytes) return {};
  TUTTI_TRY(flush());
  return {};
}

void Link::send(std::uint64_t number) {
  Sending& message = sending(number);
  const Destination* const destination = message.bytes > small_bytes ? destination_of(number) : nullptr;
  const std::size_t bytes =
      destination != nullptr ? std::min<std::size_t>(message.bytes, destination->bytes) : message.bytes;
  const std::uint64_t remote =
      destination != nullptr ? destination->address : to_.ring + number % shape_.ring_slots() * shape_.slot_bytes;
  const std::size_t queues = destination != nullptr ? 1 : queues_.size();
  const std::uint32_t pieces = shape_.pieces(bytes);
  if (destination != nullptr) ++direct_messages_;
  for (std::uint32_t piece = 0; piece < pieces; ++piece) {
    const std::size_t at = piece * shape_.piece_bytes(), end = std::min(bytes, at + shape_.piece_bytes());
    const std::size_t index = (number + piece % queues) % queues_.size();
    QueuePair& queue = *queues_[index];
    Sge memory[QueuePair::pieces_max];
    const std::uint32_t count = gather(number, at, end, memory);
    // Of a message in pieces, the last asks for the completion that frees the memory of all.
    const bool is_inline = pieces == 1 && bytes <= queue.inline_bytes() && message.offers.empty();
    queue.add({.memory = std::span(memory, count),
               .remote_address = remote + at,
               .rkey = destination != nullptr ? destination->key : to_.rkey,
               .immediate = Immediate{.message = static_cast<std::uint32_t>(number % Immediate::messages),
                                      .piece = piece,
                                      .last = pieces - 1,
                                      .direct = destination != nullptr,
                                      .credits = take_credits()}
                                .pack(),
               .is_inline = is_inline,
               .last = piece + queues >= pieces});
    // The device has copied what is inline when it is posted, which is before the slot is used again.
    if (!is_inline) message.marks[index] = queue.added();
  }
}

/// Whether one more small message fits into the write of those that wait.
bool Link::packs(std::size_t bytes) const {
  return small_ + 2 <= QueuePair::pieces_of(endpoint_->port) &&
         packed_header(small_ + 1) + small_total_ + bytes <= queues_.front()->inline_bytes();
}

/// Several small messages are one write into the slot of the last of them, which is in use the longest.
void Link::send_packed() {
  const std::uint32_t count = std::exchange(small_, 0);
  small_total_ = 0;
  if (count == 0) return;
  const std::uint64_t last = committed_ - 1;
  if (count == 1) return send(last);
  auto& header = sending(last).header;
  header = {count};
  Sge memory[QueuePair::pieces_max];
  std::uint32_t pieces = 1;
  memory[0] = {.addr = reinterpret_cast<std::uint64_t>(header.data()),
               .length = static_cast<std::uint32_t>(packed_header(count)),
               .lkey = 0};
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t number = last + 1 - count + i;
    header[i + 1] = static_cast<std::uint32_t>(sending(number).bytes);
    pieces += gather(number, 0, sending(number).bytes, std::span(memory).subspan(pieces));
  }
  queue_for(last, 0).add({.memory = std::span(memory, pieces),
                          .remote_address = to_.ring + last % shape_.ring_slots() * shape_.slot_bytes,
                          .rkey = to_.rkey,
                          .immediate = Immediate{.packed = true,
                                                 .message = static_cast<std::uint32_t>(last % Immediate::messages),
                                                 .credits = take_credits()}
                                           .pack(),
                          .is_inline = true});
}

Result<bool> Link::flush() {
  if (error_) return *error_;
  send_packed();
  bool all = true;
  for (auto& queue : queues_) {
    if (!queue->waiting()) continue;
    auto posted = queue->post();
    if (posted && !*posted) {  // the device has no space yet
      endpoint_->poll();
      if (error_) return *error_;
      posted = queue->post();
    }
    if (!posted) {
      fail(refused_here(posted.error()));
      return *error_;
    }
    all = all && *posted;
  }
  if (all) {
    waiting_bytes_ = 0;
    posted_ = committed_;
  }
  if (!all || offers_were_read()) return all;
  endpoint_->poll();
  if (error_) return *error_;
  return offers_were_read();
}

void Link::poll_set_to_send(std::vector<PollItem>& items) const {
  if (wants_slot_ || small_ > 0 || read_ != committed_ ||
      std::ranges::any_of(queues_, [](const auto& queue) { return queue->waiting(); }))
    endpoint_->poll_set(items);
}

}  // namespace tutti::verbs
