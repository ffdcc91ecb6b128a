#include "transport/shm.h"

#include <atomic>
#include <cassert>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace tutti {
namespace {

Error damaged(int peer, const char* what, std::uint64_t found, std::uint64_t expected) {
  return remote_error(fmt::format("{} is {}, at {}: shared memory is damaged", what, found, expected), peer);
}

constexpr std::size_t pieces_max = 32;  // of a slot: bits of SlotHead::offers

/// The bit of the piece in which `at` lies.
std::uint32_t piece_bit(std::size_t at, std::size_t slot_bytes) {
  const std::size_t piece_bytes = (slot_bytes + pieces_max - 1) / pieces_max;
  return std::uint32_t{1} << at / piece_bytes;
}

}  // namespace

ShmSender::ShmSender(System& system, const RankArea& mine, int rank, const RankArea& theirs, int peer, int channel,
                     bool oversubscribed, const OfferedMemory* memory)
    : ShmEnd(system, theirs, peer, channel, oversubscribed),
      rank_(rank),
      freed_(&mine.flags(channel, peer).freed),
      filled_(&theirs.flags(channel, rank).filled),
      memory_(memory) {}

/// Reads the peer's count of released messages. A count outside the range of messages in flight is an error.
Result<void> ShmSender::look() {
  const std::uint64_t freed = freed_->load();
  if (sent_ - freed > slots_) return damaged(peer_, "the count of released messages", freed, sent_);
  freed_seen_ = freed;
  return {};
}

Result<std::span<std::byte>> ShmSender::acquire() {
  if (sent_ - freed_seen_ == slots_) {
    TUTTI_TRY(look());
    if (sent_ - freed_seen_ == slots_) return std::span<std::byte>();
  }
  return std::span(theirs_.slot(channel_, rank_, sent_), slot_bytes_);
}

Result<void> ShmSender::commit(std::size_t bytes) {
  assert(bytes <= slot_bytes_ && sent_ - freed_seen_ < slots_);
  SlotHead& head = theirs_.slot_head(channel_, rank_, sent_);
  std::atomic_ref(head.bytes).store(static_cast<std::uint32_t>(bytes), std::memory_order_relaxed);
  std::atomic_ref(head.offers).store(offers_.commit(), std::memory_order_relaxed);
  std::atomic_ref(head.wanted).store(0, std::memory_order_relaxed);
  filled_->store(++sent_);
  ring();
  return {};
}

bool ShmSender::offer(std::size_t at, std::span<const std::byte> memory) {
  assert(at + memory.size() <= slot_bytes_);
  const std::uint32_t piece = piece_bit(at, slot_bytes_);
  offers_.take_back(sent_, at, piece);
  if (memory_ == nullptr || memory.size() < sizeof(Offer) || offers_.hold(piece)) return false;
  auto offer = memory_->describe(peer_, memory);
  if (!offer) return false;
  offer->at = at;
  std::memcpy(theirs_.slot(channel_, rank_, sent_) + at, &*offer, sizeof *offer);
  offers_.add(sent_, at, memory, piece);
  return true;
}

bool ShmSender::keep(std::span<const std::byte> memory) {
  if (!offers_.overlap(memory)) return true;
  if (look()) drop_read();
  return !offers_.overlap(memory);
}

Result<bool> ShmSender::flush() {
  if (offers_.empty()) return true;
  TUTTI_TRY(look());
  drop_read();
  return offers_.empty();
}

/// Also puts into slots what the peer may not read.
void ShmSender::drop_read() {
  offers_.drop_before(freed_seen_);
  fill_wanted();
}

Result<Settled> ShmSender::settled() {
  if (freed_seen_ != sent_) TUTTI_TRY(look());
  if (freed_seen_ != sent_) return Settled::not_yet;
  return sent_ > 0 && is_wanted(sent_ - 1) ? Settled::refused_last : Settled::all;
}

/// Whether the receiver of this message may not read what it offers.
bool ShmSender::is_wanted(std::uint64_t message) const {
  return std::atomic_ref(theirs_.slot_head(channel_, rank_, message).wanted).load(std::memory_order_acquire) != 0;
}

/// Puts blocks that were offered, but may not be read, where they would have been without the offer.
void ShmSender::fill_wanted() {
  bool filled = false;
  while (!offers_.empty() && offers_.oldest() < sent_ && is_wanted(offers_.oldest())) {
    const std::uint64_t message = offers_.oldest();
    offers_.fill_oldest(theirs_.slot(channel_, rank_, message));
    SlotHead& head = theirs_.slot_head(channel_, rank_, message);
    std::atomic_ref(head.offers).store(0, std::memory_order_release);
    std::atomic_ref(head.wanted).store(0, std::memory_order_relaxed);
    filled = true;
  }
  if (filled) ring();
}

ShmReceiver::ShmReceiver(System& system, const RankArea& mine, int rank, const RankArea& theirs, int peer, int channel,
                         bool oversubscribed, OfferedMemory* memory)
    : ShmEnd(system, theirs, peer, channel, oversubscribed),
      mine_(mine),
      filled_(&mine.flags(channel, peer).filled),
      freed_(&theirs.flags(channel, rank).freed),
      memory_(memory) {}

Result<std::span<const std::byte>> ShmReceiver::peek(std::size_t) {
  if (filled_seen_ == taken_) {
    const std::uint64_t filled = filled_->load();
    if (filled - taken_ > slots_) return damaged(peer_, "the count of sent messages", filled, taken_);
    filled_seen_ = filled;
    if (filled == taken_) return std::span<const std::byte>();
  }
  // Read only once: the peer could change it between the check and the use.
  SlotHead& head = mine_.slot_head(channel_, peer_, taken_);
  const std::uint32_t bytes = std::atomic_ref(head.bytes).load(std::memory_order_relaxed);
  pieces_ = std::atomic_ref(head.offers).load(std::memory_order_acquire);
  if (pieces_ != 0 && memory_ != nullptr && !memory_->reads(peer_)) {
    pieces_ = 0;
    const std::atomic_ref wanted(head.wanted);
    if (wanted.load(std::memory_order_relaxed) == 0) {
      wanted.store(1, std::memory_order_release);
      ring();
    }
    return std::span<const std::byte>();
  }
  if (bytes > slot_bytes_) return damaged(peer_, "the length of a message", bytes, slot_bytes_);
  return std::span<const std::byte>(mine_.slot(channel_, peer_, taken_), bytes);
}

Result<OfferedBlock> ShmReceiver::offered(std::size_t at) {
  if (pieces_ == 0 || at + sizeof(Offer) > slot_bytes_ || (pieces_ & piece_bit(at, slot_bytes_)) == 0)
    return OfferedBlock{};
  // Copied: the peer could change it between the check and the use.
  Offer offer;
  std::memcpy(&offer, mine_.slot(channel_, peer_, taken_) + at, sizeof offer);
  if (offer.at != at) return OfferedBlock{};
  if (memory_ == nullptr)
    return Error{.code = Code::remote, .what = "a message names memory that this rank cannot read", .peer = peer_};
  return memory_->find(peer_, offer);
}

/// A peer that has failed may have returned the memory that it offered to its user. RankState::closed cannot come
/// before the end of the peer's call.
Result<void> ShmReceiver::release() {
  assert(filled_seen_ != taken_);
  if (std::exchange(pieces_, 0) != 0) {
#ifndef __SANITIZE_THREAD__  // which knows no fences
    std::atomic_thread_fence(std::memory_order_acquire);
#endif
    const RankState state = theirs_.header().state_now();
    if (state == RankState::failed || state == RankState::aborted || state == RankState::damaged)
      return Error{.code = Code::remote, .what = "failed while its memory was read", .peer = peer_};
  }
  freed_->store(++taken_);
  ring();
  return {};
}

Result<void> ShmReceiver::refuse() {
  assert(filled_seen_ != taken_);
  SlotHead& head = mine_.slot_head(channel_, peer_, taken_);
  std::atomic_ref(head.wanted).store(1, std::memory_order_release);
  return release();
}

}  // namespace tutti
