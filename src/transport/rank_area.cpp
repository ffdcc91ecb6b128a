#include "transport/rank_area.h"

#include <cassert>
#include <limits>

namespace tutti {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t beyond = std::numeric_limits<std::size_t>::max();

// Addition that saturates at `beyond`: an absurd shape then ends in a refused allocation, not in a small one.
std::size_t plus(std::size_t a, std::size_t b) {
  std::size_t sum;
  return __builtin_add_overflow(a, b, &sum) ? beyond : sum;
}

std::size_t times(std::size_t a, std::size_t b) {
  std::size_t product;
  return __builtin_mul_overflow(a, b, &product) ? beyond : product;
}

std::size_t round_up(std::size_t bytes, std::size_t to) {
  const std::size_t rest = bytes % to;
  return rest == 0 || bytes == beyond ? bytes : plus(bytes, to - rest);
}

constexpr std::size_t ring_offset =
    (sizeof(AreaHeader) + alignof(PeerFlags) - 1) / alignof(PeerFlags) * alignof(PeerFlags);

}  // namespace

RankArea::Layout::Layout(const AreaShape& shape) {
  assert(shape.ranks >= 1 && shape.channels >= 1 && shape.slots >= 1);
  assert(shape.slot_bytes >= 1 && shape.slot_bytes <= std::numeric_limits<std::uint32_t>::max());
  const std::size_t pairs = times(shape.channels, shape.ranks);
  flags = round_up(plus(ring_offset, DescriptorRings::ring_bytes(shape.payload_bytes)), alignof(PeerFlags));
  flags_stride = round_up(plus(sizeof(PeerFlags), times(shape.slots, sizeof(SlotHead))), alignof(PeerFlags));
  slots = round_up(plus(flags, times(pairs, flags_stride)), page_bytes);
  slot_stride = round_up(shape.slot_bytes, page_bytes);
  shares = plus(slots, times(times(pairs, shape.slots), slot_stride));
  shares_stride = round_up(times(shape.ranks, share_bytes), limits::line_bytes);
  device_board = plus(shares, round_up(times(limits::call_payloads, shares_stride), page_bytes));
  bytes = plus(device_board, round_up(device_board_bytes, page_bytes));
}

RankArea::RankArea(std::byte* base, const AreaShape& shape) : base_(base), shape_(shape) {
  assert(reinterpret_cast<std::uintptr_t>(base) % page_bytes == 0);
}

void RankArea::format() {
  AreaHeader& head = header();
  head.magic = AreaHeader::magic_value;
  head.bytes = layout_.bytes;
  head.state.store(RankState::starting, std::memory_order_relaxed);
  head.failure.store(0, std::memory_order_relaxed);
  head.culprit.store(-1, std::memory_order_relaxed);
  head.ends_all.store(0, std::memory_order_relaxed);
}

std::byte* RankArea::call_descriptors() const {
  return base_ + ring_offset;
}

std::size_t RankArea::pair(int channel, int peer) const {
  assert(channel >= 0 && channel < shape_.channels && peer >= 0 && peer < shape_.ranks);
  return static_cast<std::size_t>(channel) * shape_.ranks + peer;
}

PeerFlags& RankArea::flags(int channel, int peer) const {
  return *reinterpret_cast<PeerFlags*>(base_ + layout_.flags + pair(channel, peer) * layout_.flags_stride);
}

std::byte* RankArea::slot(int channel, int peer, std::uint64_t message) const {
  const std::size_t index = pair(channel, peer) * shape_.slots + message % shape_.slots;
  return base_ + layout_.slots + index * layout_.slot_stride;
}

std::byte* RankArea::shares(std::uint64_t sequence) const {
  return base_ + layout_.shares + sequence % limits::call_payloads * layout_.shares_stride;
}

SlotHead& RankArea::slot_head(int channel, int peer, std::uint64_t message) const {
  auto* const heads = reinterpret_cast<SlotHead*>(&flags(channel, peer) + 1);
  return heads[message % shape_.slots];
}

}  // namespace tutti
