#include "perf/buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>

namespace perf {
namespace {

constexpr std::size_t kGuard = 64;  // bytes behind each buffer that no rank may write
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

DeviceMemory::DeviceMemory(const Gpu* gpu, const Memory& host, std::size_t bytes)
    : gpu_(gpu), host_(host.data()), bytes_(bytes) {
  if (gpu_ != nullptr) at_ = gpu_->allocate(bytes_);
  store();
}

DeviceMemory::~DeviceMemory() {
  if (at_ != nullptr) gpu_->free(at_);
}

void DeviceMemory::store() const {
  if (at_ != nullptr) gpu_->to_device(at_, host_, bytes_);
}

void DeviceMemory::fetch() const {
  if (at_ != nullptr) gpu_->to_host(host_, at_, bytes_);
}

CallBuffers::CallBuffers(const Description& description, const Rank& rank, std::size_t bytes, Buffers kind)
    : description_(description),
      ranks_(static_cast<std::size_t>(rank.ranks)),
      block_bytes_(bytes / larger_blocks(description, rank.ranks) + kLargestElement),
      send_bytes_(block_bytes_ * blocks(description.send) + kGuard),
      // In place, it also holds the data to send.
      recv_bytes_(block_bytes_ * std::max(blocks(description.send), blocks(description.recv)) + kGuard),
      send_(send_bytes_, is_from_tutti(kind, rank), rank.rank),
      recv_(recv_bytes_, is_from_tutti(kind, rank), rank.rank),
      device_send_(rank.gpu, send_, send_bytes_),
      device_recv_(rank.gpu, recv_, recv_bytes_) {}

std::byte* CallBuffers::host(const void* of_call) const {
  const auto* const at = static_cast<const std::byte*>(of_call);
  const auto within = [at](const DeviceMemory& memory, std::size_t bytes) {
    return !std::less<>()(at, memory.data()) && std::less<>()(at, memory.data() + bytes);
  };
  if (within(device_send_, send_bytes_)) return send_.data() + (at - device_send_.data());
  return recv_.data() + (at - device_recv_.data());
}

void CallBuffers::fetch() const {
  device_send_.fetch();
  device_recv_.fetch();
}

void CallBuffers::place(Call& call, bool in_place) const {
  std::byte* base = device_recv_.data();
  const std::size_t own = static_cast<std::size_t>(call.rank) * call.count * type_of(call.type).bytes;
  call.send = in_place ? base : device_send_.data();
  call.recv = base;
  if (!in_place) return;
  if (description_.in_place == InPlace::send_is_own_block) call.send = base + own;
  // In place, only root receives its block of a scatter in its own buffer; the send buffers of other ranks do not
  // matter.
  if (description_.in_place == InPlace::recv_is_own_block) call.recv = base + own;
}

void CallBuffers::prepare(const Call& call, bool in_place, const Pattern& pattern) const {
  const std::size_t count = call.count * blocks(description_.send);
  const std::size_t result = call.count * blocks(description_.recv) * type_of(call.type).bytes;
  if (in_place) {
    std::fill_n(recv_.data(), std::min(recv_bytes_, result + kGuard), kPoison);
    pattern.fill(host(call.send), count, call.rank);
  } else {
    pattern.fill(send_.data(), count, call.rank);
    std::fill_n(recv_.data(), std::min(recv_bytes_, result + kGuard), kPoison);
  }
  device_send_.store();
  device_recv_.store();
}

void CallBuffers::clear() const {
  std::fill_n(send_.data(), send_bytes_, std::byte{0});
  std::fill_n(recv_.data(), recv_bytes_, std::byte{0});
  device_send_.store();
  device_recv_.store();
}

std::size_t CallBuffers::count_wrong(const Call& call, bool in_place, const Pattern& pattern) const {
  const std::size_t element = type_of(call.type).bytes;
  const std::vector<Piece> pieces = description_.expected(call);
  std::size_t wrong = 0;
  for (const Piece& piece : pieces)
    wrong += pattern.count_wrong(host(call.recv) + piece.at * element, piece.count, piece.rank, piece.first);
  if (in_place) return wrong;
  wrong += pattern.count_wrong(host(call.send), call.count * blocks(description_.send), call.rank, 0);
  return wrong + count_stray(call, pieces);
}

std::size_t CallBuffers::count_stray(const Call& call, const std::vector<Piece>& pieces) const {
  std::size_t end = 0;
  for (const Piece& piece : pieces) end = std::max(end, (piece.at + piece.count) * type_of(call.type).bytes);
  const auto* guard = host(call.recv) + end;
  return static_cast<std::size_t>(std::count_if(guard, guard + kGuard, [](std::byte b) { return b != kPoison; }));
}

}  // namespace perf
