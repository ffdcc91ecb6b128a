#include "perf/buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace perf {
namespace {

constexpr std::size_t kGuard = 64;  // bytes behind each buffer that nobody may write
constexpr std::byte kPoison{0xa5};
constexpr std::size_t kLargestElement = 8;

std::size_t larger_blocks(const Description& description, int ranks) {
  const bool per_rank = description.send == Blocks::per_rank || description.recv == Blocks::per_rank;
  return per_rank ? static_cast<std::size_t>(ranks) : 1;
}

bool is_from_tutti(Buffers kind, const Rank& rank) {
  return kind == Buffers::tutti || (kind == Buffers::mixed && rank.rank % 2 == 0);
}

}  // namespace

std::size_t count_for(const Description& description, std::size_t bytes, std::size_t element, int ranks) {
  const std::size_t unit = element * larger_blocks(description, ranks);
  return (bytes + unit - 1) / unit;
}

std::size_t bytes_for(const Description& description, std::size_t count, std::size_t element, int ranks) {
  return count * element * larger_blocks(description, ranks);
}

void Memory::Free::operator()(std::byte* data) const {
  if (from_tutti)
    tuttiMemFree(data);
  else
    std::free(data);
}

Memory::Memory(std::size_t bytes, bool from_tutti, int rank) : data_(nullptr, Free{from_tutti}) {
  constexpr std::size_t kPage = 4096;
  void* at = nullptr;
  if (from_tutti)
    expect_success(tuttiMemAlloc(&at, bytes), nullptr, rank, fmt::format("tuttiMemAlloc of {} B", bytes));
  else
    at = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (at == nullptr) fail(rank, fmt::format("no memory for a buffer of {} B", bytes));
  std::memset(at, 0, bytes);
  data_.reset(static_cast<std::byte*>(at));
}

CallBuffers::CallBuffers(const Description& description, const Rank& rank, std::size_t bytes, Buffers kind)
    : description_(description),
      ranks_(static_cast<std::size_t>(rank.ranks)),
      block_bytes_(bytes / larger_blocks(description, rank.ranks) + kLargestElement),
      send_bytes_(block_bytes_ * blocks(description.send) + kGuard),
      // In place it holds what is sent, too.
      recv_bytes_(block_bytes_ * std::max(blocks(description.send), blocks(description.recv)) + kGuard),
      send_(send_bytes_, is_from_tutti(kind, rank), rank.rank),
      recv_(recv_bytes_, is_from_tutti(kind, rank), rank.rank) {}

void CallBuffers::place(Call& call, bool in_place) const {
  std::byte* base = recv_.data();
  const std::size_t own = static_cast<std::size_t>(call.rank) * call.count * type_of(call.type).bytes;
  call.send = in_place ? base : send_.data();
  call.recv = base;
  if (!in_place) return;
  if (description_.in_place == InPlace::send_is_own_block) call.send = base + own;
  // Only root receives its block of a scatter from its own buffer: the others' send buffer does not matter.
  if (description_.in_place == InPlace::recv_is_own_block) call.recv = base + own;
}

void CallBuffers::prepare(const Call& call, bool in_place, const Pattern& pattern) const {
  const std::size_t count = call.count * blocks(description_.send);
  const std::size_t result = call.count * blocks(description_.recv) * type_of(call.type).bytes;
  if (in_place) {
    std::fill_n(recv_.data(), std::min(recv_bytes_, result + kGuard), kPoison);
    pattern.fill(const_cast<void*>(call.send), count, call.rank);
    return;
  }
  pattern.fill(send_.data(), count, call.rank);
  std::fill_n(recv_.data(), std::min(recv_bytes_, result + kGuard), kPoison);
}

void CallBuffers::clear() const {
  std::fill_n(send_.data(), send_bytes_, std::byte{0});
  std::fill_n(recv_.data(), recv_bytes_, std::byte{0});
}

std::size_t CallBuffers::count_wrong(const Call& call, bool in_place, const Pattern& pattern) const {
  const std::size_t element = type_of(call.type).bytes;
  const std::vector<Piece> pieces = description_.expected(call);
  std::size_t wrong = 0;
  for (const Piece& piece : pieces)
    wrong += pattern.count_wrong(static_cast<const std::byte*>(call.recv) + piece.at * element, piece.count, piece.rank,
                                 piece.first);
  if (in_place) return wrong;
  wrong += pattern.count_wrong(call.send, call.count * blocks(description_.send), call.rank, 0);
  return wrong + count_stray(call, pieces);
}

std::size_t CallBuffers::count_stray(const Call& call, const std::vector<Piece>& pieces) const {
  std::size_t end = 0;
  for (const Piece& piece : pieces) end = std::max(end, (piece.at + piece.count) * type_of(call.type).bytes);
  const auto* guard = static_cast<const std::byte*>(call.recv) + end;
  return static_cast<std::size_t>(std::count_if(guard, guard + kGuard, [](std::byte b) { return b != kPoison; }));
}

}  // namespace perf
