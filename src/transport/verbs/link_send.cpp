// Messages on their way out: slots, offered blocks, and the writes that carry them.
#include <algorithm>
#include <cassert>
#include <utility>

#include "transport/verbs/link.h"

namespace tutti::verbs {
namespace {

/// Smaller amounts wait for the flush, so that several small messages are posted in one call.
constexpr std::size_t post_at_once_bytes = 16 * 1024;
/// The receiver of as much may have invited the message meanwhile.
constexpr std::size_t look_bytes = 4096;

}  // namespace

Outgoing::Outgoing(LinkQueues& queues, const LinkShape& shape, const RegisteredMemory& slots, const std::byte* ring)
    : queues_(queues),
      shape_(shape),
      slots_(slots.data(), slots.lkey(), slots.bytes() / shape.slot_bytes, shape.slot_bytes),
      invitations_(shape, ring) {}

/// A slot here, one at the peer, and space for all pieces and a report of credits on each queue pair.
bool Outgoing::may_send() const {
  if (committed_ - freed_by_peer_ >= shape_.ring_slots() || committed_ - posted_ >= slots_.count() ||
      !was_read(committed_))
    return false;
  return queues_.have_space();
}

Result<std::span<std::byte>> Outgoing::acquire() {
  if (!filling_ && !may_send()) {
    queues_.endpoint().poll();
    TUTTI_TRY(flush());
    wants_slot_ = !may_send();
    if (wants_slot_) return std::span<std::byte>();
  }
  if (queues_.error()) return *queues_.error();
  if (!filling_) slots_[committed_].offers.clear();
  filling_ = true;
  wants_slot_ = false;
  return slots_.slot(committed_);
}

bool Outgoing::offer(std::size_t at, std::span<const std::byte> memory) {
  assert(filling_ && at + memory.size() <= shape_.slot_bytes);
  Registrations* const registrations = queues_.endpoint().registrations();
  if (registrations == nullptr) return false;
  auto& offers = slots_[committed_].offers;
  std::erase_if(offers, [at](const SendSlots::Offer& offer) { return offer.at == at; });
  // The pieces of a write are offers and what lies between them.
  if (2 * (offers.size() + 1) + 1 > QueuePair::pieces_of(queues_.endpoint().port)) return false;
  const Mr* const mr = registrations->find(memory);
  if (mr == nullptr) return false;
  slots_.offer(committed_, {.at = at, .memory = memory, .key = mr->lkey});
  return true;
}

/// The device needs nobody's help to read the rest, so there is no need to copy it.
bool Outgoing::keep(std::span<const std::byte> memory) {
  for (std::uint64_t number = read_; number != committed_ + (filling_ ? 1 : 0); ++number) {
    if (!slots_.has_offers_in(number, memory)) continue;
    if (number == committed_) {
      slots_.copy_offers_in(number, memory);
    } else if (!was_read(number)) {
      (void)flush();  // an error shows below
      if (!was_read(number)) return queues_.error().has_value();
    }
  }
  return true;
}

bool Outgoing::offers_were_read() {
  while (read_ != committed_ && (slots_[read_].offers.empty() || was_read(read_))) ++read_;
  return read_ == committed_;
}

bool Outgoing::take_invitation(std::uint32_t message) {
  invited_ = true;
  return invitations_.take(message, committed_);
}

Result<void> Outgoing::commit(std::size_t bytes) {
  assert(filling_ && bytes <= shape_.slot_bytes);
  if (bytes >= look_bytes) queues_.endpoint().poll();
  if (queues_.error()) return *queues_.error();
  if (queues_.owed() > 0 || std::exchange(invited_, false)) TUTTI_TRY(queues_.post_receives());
  filling_ = false;
  const bool is_small = bytes <= small_bytes && slots_[committed_].offers.empty();
  if (!is_small || !packs(bytes)) send_packed();
  slots_[committed_++].bytes = bytes;
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

void Outgoing::send(std::uint64_t number) {
  SendSlots::Message& message = slots_[number];
  const Destination* const invited = message.bytes > small_bytes ? invitations_.of(number) : nullptr;
  const std::size_t bytes = invited != nullptr ? std::min<std::size_t>(message.bytes, invited->bytes) : message.bytes;
  const Destination to = invited != nullptr ? *invited : queues_.in_ring(shape_.slot_at(number));
  const std::size_t queues = invited != nullptr ? 1 : queues_.all().size();
  const std::uint32_t pieces = shape_.pieces(bytes);
  if (invited != nullptr) ++direct_messages_;
  for (std::uint32_t piece = 0; piece < pieces; ++piece) {
    const std::size_t at = piece * shape_.piece_bytes(), end = std::min(bytes, at + shape_.piece_bytes());
    const std::size_t index = (number + piece % queues) % queues_.all().size();
    QueuePair& queue = *queues_.all()[index];
    Sge memory[QueuePair::pieces_max];
    const std::uint32_t count = slots_.gather(number, at, end, memory);
    // Of a message in pieces, the last asks for the completion that frees the memory of all.
    const bool is_inline = pieces == 1 && bytes <= queue.inline_bytes() && message.offers.empty();
    queues_.add(queue,
                {.memory = std::span(memory, count),
                 .remote_address = to.address + at,
                 .rkey = to.key,
                 .is_inline = is_inline,
                 .last = piece + queues >= pieces},
                {.message = static_cast<std::uint32_t>(number),
                 .piece = piece,
                 .last = pieces - 1,
                 .direct = invited != nullptr});
    // The device has copied what is inline when it is posted, which is before the slot is used again.
    if (!is_inline) message.marks[index] = queue.added();
  }
}

/// Whether one more small message fits into the write of those that wait.
bool Outgoing::packs(std::size_t bytes) const {
  return small_ + 2 <= QueuePair::pieces_of(queues_.endpoint().port) &&
         packed_header(small_ + 1) + small_total_ + bytes <= queues_.all().front()->inline_bytes();
}

/// Several small messages are one write into the slot of the last of them, which is in use the longest.
void Outgoing::send_packed() {
  const std::uint32_t count = std::exchange(small_, 0);
  small_total_ = 0;
  if (count == 0) return;
  const std::uint64_t last = committed_ - 1;
  if (count == 1) return send(last);
  auto& header = slots_[last].header;
  header = {count};
  Sge memory[QueuePair::pieces_max];
  std::uint32_t pieces = 1;
  memory[0] = {.addr = reinterpret_cast<std::uint64_t>(header.data()),
               .length = static_cast<std::uint32_t>(packed_header(count)),
               .lkey = 0};
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t number = last + 1 - count + i;
    header[i + 1] = static_cast<std::uint32_t>(slots_[number].bytes);
    pieces += slots_.gather(number, 0, slots_[number].bytes, std::span(memory).subspan(pieces));
  }
  const Destination to = queues_.in_ring(shape_.slot_at(last));
  queues_.add(queues_.of(last),
              {.memory = std::span(memory, pieces), .remote_address = to.address, .rkey = to.key, .is_inline = true},
              {.packed = true, .message = static_cast<std::uint32_t>(last)});
}

Result<bool> Outgoing::flush() {
  if (queues_.error()) return *queues_.error();
  send_packed();
  const bool all = TUTTI_TRY(queues_.post());
  if (all) {
    waiting_bytes_ = 0;
    posted_ = committed_;
  }
  if (!all || offers_were_read()) return all;
  queues_.endpoint().poll();
  if (queues_.error()) return *queues_.error();
  return offers_were_read();
}

void Outgoing::poll_set(std::vector<PollItem>& items) const {
  if (wants_slot_ || small_ > 0 || read_ != committed_ || queues_.have_waiting()) queues_.endpoint().poll_set(items);
}

}  // namespace tutti::verbs
