#include "transport/shm.h"

#include <atomic>
#include <cassert>

#include <fmt/format.h>

namespace tutti {
namespace {

Error damaged(int peer, const char* what, std::uint64_t found, std::uint64_t expected) {
  return Error{.code = Code::remote,
               .what = fmt::format("{} is {}, at {}: shared memory is damaged", what, found, expected),
               .peer = peer};
}

}  // namespace

ShmSender::ShmSender(System& system, const RankArea& mine, int rank, const RankArea& theirs, int peer, int channel,
                     bool oversubscribed)
    : system_(system),
      theirs_(theirs),
      rank_(rank),
      peer_(peer),
      channel_(channel),
      oversubscribed_(oversubscribed),
      slot_bytes_(theirs.shape().slot_bytes),
      slots_(theirs.shape().slots),
      freed_(&mine.freed(channel, peer)),
      filled_(&theirs.filled(channel, rank)),
      doorbell_(&theirs.header().doorbell) {}

/// Reads the peer's count of released messages. A count outside the range of messages in flight is an error.
Result<void> ShmSender::look() {
  const std::uint64_t freed = freed_->load();
  if (sent_ - freed > slots_) return damaged(peer_, "the count of released messages", freed, sent_);
  freed_seen_ = freed;
  return {};
}

Result<std::span<std::byte>> ShmSender::acquire() {
  if (sent_ - freed_seen_ == slots_) {
    if (auto looked = look(); !looked) return std::move(looked).error();
    if (sent_ - freed_seen_ == slots_) return std::span<std::byte>();
  }
  return std::span(theirs_.slot(channel_, rank_, sent_), slot_bytes_);
}

Result<void> ShmSender::commit(std::size_t bytes) {
  assert(bytes <= slot_bytes_ && sent_ - freed_seen_ < slots_);
  std::atomic_ref(theirs_.slot_length(channel_, rank_, sent_))
      .store(static_cast<std::uint32_t>(bytes), std::memory_order_relaxed);
  filled_->store(++sent_);
  doorbell_->ring(system_, oversubscribed_);
  return {};
}

Result<bool> ShmSender::settled() {
  if (freed_seen_ == sent_) return true;
  if (auto looked = look(); !looked) return std::move(looked).error();
  return freed_seen_ == sent_;
}

ShmReceiver::ShmReceiver(System& system, const RankArea& mine, int rank, const RankArea& theirs, int peer, int channel,
                         bool oversubscribed)
    : system_(system),
      mine_(mine),
      peer_(peer),
      channel_(channel),
      oversubscribed_(oversubscribed),
      slot_bytes_(mine.shape().slot_bytes),
      slots_(mine.shape().slots),
      filled_(&mine.filled(channel, peer)),
      freed_(&theirs.freed(channel, rank)),
      doorbell_(&theirs.header().doorbell) {}

Result<std::span<const std::byte>> ShmReceiver::peek(std::size_t) {
  if (filled_seen_ == taken_) {
    const std::uint64_t filled = filled_->load();
    if (filled - taken_ > slots_) return damaged(peer_, "the count of sent messages", filled, taken_);
    filled_seen_ = filled;
    if (filled == taken_) return std::span<const std::byte>();
  }
  // Read only once: the peer could change it between the check and the use.
  const std::uint32_t bytes =
      std::atomic_ref(mine_.slot_length(channel_, peer_, taken_)).load(std::memory_order_relaxed);
  if (bytes > slot_bytes_) return damaged(peer_, "the length of a message", bytes, slot_bytes_);
  return std::span<const std::byte>(mine_.slot(channel_, peer_, taken_), bytes);
}

Result<void> ShmReceiver::release() {
  assert(filled_seen_ != taken_);
  freed_->store(++taken_);
  doorbell_->ring(system_, oversubscribed_);
  return {};
}

}  // namespace tutti
