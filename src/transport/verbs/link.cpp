#include "transport/verbs/link.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <functional>
#include <utility>

#include <fmt/format.h>

namespace tutti::verbs {
namespace {

/// Smaller amounts wait for the flush, so that several small messages are posted in one call.
constexpr std::size_t post_at_once_bytes = 16 * 1024;
/// Smaller pieces cost more than they save.
constexpr std::size_t piece_bytes_min = 16 * 1024;
/// Of one message; pieces of a write are offers and what lies between them.
constexpr std::size_t offers_max = QueuePair::pieces_max / 2 - 1;
/// Receives for writes that carry credits alone: each reports half of the ring, so no more than two are under way.
constexpr std::uint32_t credit_receives = 4;

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::less<>()(a.data(), b.data() + b.size()) && std::less<>()(b.data(), a.data() + a.size());
}

std::uint32_t host_order(std::uint32_t value) {
  return std::endian::native == std::endian::little ? __builtin_bswap32(value) : value;
}

}  // namespace

std::size_t LinkShape::piece_bytes() const {
  const std::size_t quarter = (slot_bytes + 3) / 4;
  return std::max(piece_bytes_min, (quarter + 63) / 64 * 64);
}

std::uint32_t LinkShape::pieces(std::size_t bytes) const {
  return bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes + piece_bytes() - 1) / piece_bytes());
}

std::uint32_t LinkShape::sends() const {
  return ring_slots() * pieces(slot_bytes) + 2 * credit_receives;
}

std::uint32_t LinkShape::receives() const {
  return ring_slots() * pieces(slot_bytes) + credit_receives;
}

Link::Link(std::shared_ptr<Endpoint> endpoint, const LinkShape& shape, int peer, std::string peer_name)
    : endpoint_(std::move(endpoint)),
      shape_(shape),
      peer_(peer),
      peer_name_(std::move(peer_name)),
      sending_(static_cast<std::size_t>(shape.slots)),
      arriving_(shape.ring_slots()) {}

Result<std::shared_ptr<Link>> Link::make(std::shared_ptr<Endpoint> endpoint, const LinkShape& shape,
                                         const QueueShape& queues, int peer, std::string peer_name) {
  std::shared_ptr<Link> link(new Link(std::move(endpoint), shape, peer, std::move(peer_name)));
  if (auto created = link->create(queues); !created) return std::move(created).error();
  return link;
}

Result<void> Link::create(const QueueShape& queues) {
  assert(shape_.pieces(shape_.slot_bytes) <= Immediate::pieces_max);
  auto ring = RegisteredMemory::make(endpoint_, shape_.ring_slots() * shape_.slot_bytes,
                                     access_flag::local_write | access_flag::remote_write);
  if (!ring) return std::move(ring).error();
  ring_ = *std::move(ring);
  auto slots = RegisteredMemory::make(endpoint_, sending_.size() * shape_.slot_bytes, access_flag::local_write);
  if (!slots) return std::move(slots).error();
  slots_ = *std::move(slots);
  auto sink = endpoint_->attach(this);
  if (!sink) return std::move(sink).error();
  sink_ = *sink;
  QueueShape all = queues;
  all.sends = shape_.sends();
  all.receives = shape_.receives();
  for (int i = 0; i < shape_.queue_pairs; ++i) {
    auto pair = QueuePair::create(endpoint_, all, *sink_, static_cast<std::uint32_t>(i));
    if (!pair) return std::move(pair).error();
    queues_.push_back(*std::move(pair));
  }
  return {};
}

Link::~Link() {
  if (sink_) endpoint_->detach(*sink_);
}

LinkAddress Link::address() const {
  const Port& port = endpoint_->port;
  LinkAddress address{.shape = shape_,
                      .port = {.link_layer = port.link_layer, .lid = port.lid, .mtu = port.mtu, .gid = port.gid},
                      .ring = ring_->address(),
                      .rkey = ring_->rkey()};
  for (std::size_t i = 0; i < queues_.size(); ++i) address.queues[i] = queues_[i]->address();
  return address;
}

Result<void> Link::connect(const LinkAddress& peer) {
  if (!(peer.shape == shape_))
    return Error{.code = Code::remote, .what = fmt::format("{} has slots of another shape", peer_name_)};
  if (peer.port.link_layer != endpoint_->port.link_layer)
    return Error{.code = Code::remote,
                 .what = fmt::format("{} is on a fabric of another kind (InfiniBand or Ethernet)", peer_name_)};
  to_ = peer;
  for (std::size_t i = 0; i < queues_.size(); ++i)
    if (auto connected = queues_[i]->connect(peer.queues[i], peer.port); !connected) return connected;
  return {};
}

Result<void> Link::probe() {
  for (auto& queue : queues_) {
    queue->add({.memory = {},
                .remote_address = to_.ring,
                .rkey = to_.rkey,
                .immediate = Immediate{.credit_only = true}.pack()});
    if (auto posted = queue->post(); !posted) return std::move(posted).error();
  }
  return {};
}

Result<bool> Link::probed() {
  endpoint_->poll();
  if (error_) return *error_;
  return std::ranges::all_of(queues_, [](const auto& queue) { return queue->completed() == queue->added(); });
}

Error Link::broken(std::string why) const {
  return {.code = Code::remote,
          .what = fmt::format("the RDMA connection to {} over {} failed: {}", peer_name_, endpoint_->port.text(), why),
          .peer = peer_};
}

/// Nothing arrives or leaves afterwards: the memory may be used again.
void Link::fail(const Error& error) {
  if (error_) return;
  error_ = error;
  for (auto& queue : queues_) queue->stop();
}

// ---- Sending ----

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
  const std::uint32_t needed = shape_.pieces(shape_.slot_bytes) + credit_receives;
  return std::ranges::all_of(queues_, [&](const auto& queue) { return queue->space() >= needed; });
}

Result<std::span<std::byte>> Link::acquire() {
  if (!filling_ && !may_send()) {
    endpoint_->poll();
    if (auto flushed = flush(); !flushed) return std::move(flushed).error();
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
  if (offers.size() == offers_max) return false;
  const auto key = endpoint_->registrations()->key_of(memory);
  if (!key) return false;
  const auto next = std::ranges::find_if(offers, [at](const Offer& offer) { return offer.at > at; });
  offers.insert(next, {.at = at, .memory = memory, .key = *key});
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
  if (error_) return *error_;
  if (owed_ > 0)
    if (auto posted = post_receives(); !posted) return posted;
  filling_ = false;
  const std::uint64_t number = committed_++;
  const std::uint32_t pieces = shape_.pieces(bytes);
  const std::uint64_t remote = to_.ring + number % shape_.ring_slots() * shape_.slot_bytes;
  for (std::uint32_t piece = 0; piece < pieces; ++piece) {
    const std::size_t at = piece * shape_.piece_bytes(), end = std::min(bytes, at + shape_.piece_bytes());
    QueuePair& queue = queue_for(number, piece);
    Sge memory[QueuePair::pieces_max];
    const std::uint32_t count = gather(number, at, end, memory);
    const bool is_inline = end - at <= queue.inline_bytes() && sending(number).offers.empty();
    queue.add({.memory = std::span(memory, count),
               .remote_address = remote + at,
               .rkey = to_.rkey,
               .immediate = Immediate{.message = static_cast<std::uint32_t>(number % Immediate::messages),
                                      .piece = piece,
                                      .last = pieces - 1,
                                      .credits = take_credits()}
                                .pack(),
               .is_inline = is_inline,
               .last = piece + queues_.size() >= pieces});
    // The device has copied what is inline when it is posted, which is before the slot is used again.
    if (!is_inline) sending(number).marks[(number + piece) % queues_.size()] = queue.added();
  }
  waiting_bytes_ += bytes;
  if (waiting_bytes_ < post_at_once_bytes) return {};
  if (auto flushed = flush(); !flushed) return std::move(flushed).error();
  return {};
}

Result<bool> Link::flush() {
  if (error_) return *error_;
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
      fail(broken(posted.error().text()));
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
  if (wants_slot_ || read_ != committed_ ||
      std::ranges::any_of(queues_, [](const auto& queue) { return queue->waiting(); }))
    endpoint_->poll_set(items);
}

// ---- Receiving ----

void Link::complete(const Completion& completion) {
  const WorkWord word{static_cast<std::uint32_t>(completion.wr_id)};
  if (completion.status != Status::success) {
    if (completion.status != Status::flushed || !error_)
      fail(broken(fmt::format("{} (status {})", text(endpoint_->library(), completion.status),
                              static_cast<int>(completion.status))));
    return;
  }
  if (error_ || word.queue() >= queues_.size()) return;
  QueuePair& queue = *queues_[word.queue()];
  if (!word.is_receive()) return queue.complete(word);
  queue.used_receive();
  receive(completion);
}

/// All numbers are the peer's: checked before they are used.
void Link::receive(const Completion& completion) {
  const Immediate immediate = Immediate::unpack(host_order(completion.immediate));
  const bool right = (completion.wc_flags & with_immediate) != 0 && immediate.credits <= committed_ - freed_by_peer_ &&
                     (immediate.credit_only || place(immediate, completion.byte_len));
  if (!right) return fail(broken("a message came that cannot be"));
  freed_by_peer_ += immediate.credits;
  grant();
  // Credits alone are the only messages that no message of this direction must follow.
  if (immediate.credit_only) (void)post_receives();
}

/// False: such a piece cannot come now.
bool Link::place(const Immediate& immediate, std::size_t bytes) {
  const std::uint32_t ahead =
      (immediate.message - static_cast<std::uint32_t>(granted_ % Immediate::messages)) % Immediate::messages;
  if (ahead >= shape_.ring_slots() || immediate.piece > immediate.last) return false;
  Arriving& message = arriving(granted_ + ahead);
  const std::uint32_t bit = 1u << immediate.piece;
  const bool fits = immediate.piece == immediate.last ? bytes <= shape_.piece_bytes() : bytes == shape_.piece_bytes();
  if (!fits || (message.pieces & bit) != 0 || (message.pieces != 0 && message.last != immediate.last)) return false;
  message.pieces |= bit;
  message.last = immediate.last;
  message.bytes += bytes;
  return message.bytes <= shape_.slot_bytes;
}

std::byte* Link::ring_slot(std::uint64_t message) const {
  return ring_->data() + message % shape_.ring_slots() * shape_.slot_bytes;
}

Result<std::span<const std::byte>> Link::peek(std::size_t /*bytes*/) {
  // If the slot still belongs to a message that was released before all of it was here, nothing of this one is here.
  const auto is_here = [&] { return has_space_for_next() && arriving(taken_).complete(); };
  if (!is_here()) endpoint_->poll();
  wants_message_ = !is_here();
  if (!wants_message_) return std::span<const std::byte>(ring_slot(taken_), arriving(taken_).bytes);
  if (error_) return *error_;
  return std::span<const std::byte>();
}

Result<std::span<const std::byte>> Link::expect(std::size_t bytes) {
  if (bytes > shape_.slot_bytes)
    return Error{.code = Code::internal,
                 .what = fmt::format("a message of {} bytes for a slot of {}", bytes, shape_.slot_bytes)};
  if (!has_space_for_next()) endpoint_->poll();
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
    endpoint_->poll();
    found = here();
  }
  wants_message_ = found < bytes;
  if (found == 0 && bytes > 0 && error_) return *error_;
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
  if (*here > landed_) std::copy_n(ring_slot(taken_) + at + landed_, *here - landed_, into.data() + landed_);
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
}

/// A rank that only receives sends no messages that could carry the credits.
Result<void> Link::report_credits() {
  if (owed_ < shape_.ring_slots() / 2) return {};
  if (auto posted = post_receives(); !posted) return posted;
  QueuePair& queue = *queues_.front();
  if (queue.space() == 0) {
    endpoint_->poll();
    if (queue.space() == 0) return {};  // the next release, or the next message, reports
  }
  queue.add({.memory = {},
             .remote_address = to_.ring,
             .rkey = to_.rkey,
             .immediate = Immediate{.credit_only = true, .credits = take_credits()}.pack(),
             .is_inline = true});
  ++credit_messages_;
  if (auto flushed = flush(); !flushed) return std::move(flushed).error();
  return {};
}

Result<void> Link::post_receives() {
  for (auto& queue : queues_)
    if (auto posted = queue->post_receives(); !posted) {
      fail(broken(posted.error().text()));
      return *error_;
    }
  return {};
}

void Link::poll_set_to_receive(std::vector<PollItem>& items) const {
  if (wants_message_) endpoint_->poll_set(items);
}

}  // namespace tutti::verbs
