#include "cuda/mapped_buffers.h"

#include <cstring>
#include <utility>

#include "kernels/entries.h"

namespace tutti::cuda {

static_assert(device::Offer::places == BufferBoard::places_max);

Result<std::unique_ptr<WindowTable>> WindowTable::make(const SharedGpu& gpu, int ranks) {
  std::unique_ptr<WindowTable> table(new WindowTable(gpu));
  const auto current = TUTTI_TRY(Current::enter(*gpu));
  const std::size_t bytes = static_cast<std::size_t>(ranks) * device::Offer::places * sizeof(std::byte*);
  table->stream_ = TUTTI_TRY(OwnStream::create(gpu));
  table->word_ = TUTTI_TRY(PinnedMemory::allocate(gpu, sizeof(std::byte*)));
  table->memory_ = TUTTI_TRY(DeviceMemory::allocate(gpu, bytes));
  TUTTI_TRY(gpu->clear(table->memory_.data(), bytes, table->stream_.get()));
  TUTTI_TRY(gpu->synchronize(table->stream_.get()));
  return table;
}

Result<void> WindowTable::set(int rank, std::uint32_t place, std::byte* at) {
  std::memcpy(word_.host(), &at, sizeof at);
  const std::size_t index = static_cast<std::size_t>(rank) * device::Offer::places + place;
  TUTTI_TRY(gpu_->copy(memory_.data() + index * sizeof at, word_.device(), sizeof at, stream_.get()));
  return gpu_->synchronize(stream_.get());
}

MappedBuffers::MappedBuffers(PeerMapTable& table, SharedGpu gpu, const std::vector<Board>& boards, WindowTable* windows)
    : table_(table), gpu_(std::move(gpu)), windows_(windows) {
  for (const Board& board : boards)
    of_.push_back({.board = board.at,
                   .same_process = board.same_process,
                   .places = std::vector<Mapped>(board.at == nullptr ? 0 : BufferBoard::places_max)});
}

std::vector<Error> MappedBuffers::follow() {
  std::vector<Error> failed;
  for (OfRank& one : of_) {
    if (one.board == nullptr) continue;
    const std::uint32_t changes = one.board->changes.load(std::memory_order_acquire);
    if (changes == one.changes) continue;
    bool all = true;
    for (std::uint32_t place = 0; place < BufferBoard::places_max; ++place) {
      const std::uint32_t version = one.board->places[place].version.load(std::memory_order_acquire);
      if (version == one.places[place].version) continue;
      if (must_wait(one, place, version)) {
        all = false;
        continue;
      }
      if (auto followed = follow(one, place, version); !followed)
        failed.push_back(std::move(followed)
                             .error()
                             .during("map device memory of a peer")
                             .at_peer(static_cast<int>(&one - of_.data())));
    }
    if (all) one.changes = changes;
  }
  return failed;
}

/// The peer may have other memory now where some was that this process has yet to close.
bool MappedBuffers::must_wait(const OfRank& rank, std::uint32_t place, std::uint32_t version) const {
  const auto& offer = rank.board->places[place];
  return BufferBoard::offered(version) && !rank.same_process && table_.is_closing(*gpu_, offer.handle, offer.id);
}

Result<void> MappedBuffers::follow(OfRank& rank, std::uint32_t place, std::uint32_t version) {
  auto& offer = rank.board->places[place];
  Mapped next{.version = version};
  Result<void> result;
  if (BufferBoard::offered(version)) {
    result = map(rank, place, next);
    if (!result) offer.refusals.fetch_add(1, std::memory_order_relaxed);
  }
  {
    const std::lock_guard lock(mutex_);
    std::swap(rank.places[place], next);
  }
  next = {};  // closed soon, whatever the owner hears
  offer.answers.fetch_add(1, std::memory_order_release);
  return result;
}

Result<void> MappedBuffers::map(const OfRank& rank, std::uint32_t place, Mapped& next) {
  const auto& offer = rank.board->places[place];
  if (rank.same_process) {
    next.at = reinterpret_cast<std::byte*>(offer.base);  // NOLINT: an address of the GPU's
  } else {
    next.mapping = TUTTI_TRY(PeerMapping::open(table_, gpu_, offer.handle, offer.id));
    next.at = next.mapping.data();
  }
  next.bytes = offer.bytes;
  return windows_ == nullptr ? Result<void>() : windows_->set(static_cast<int>(&rank - of_.data()), place, next.at);
}

Result<std::byte*> MappedBuffers::find(int rank, const SharedLocation& location, std::size_t bytes) const {
  const OfRank& one = of_[static_cast<std::size_t>(rank)];
  const std::lock_guard lock(mutex_);
  if (location.place < one.places.size()) {
    const Mapped& mapped = one.places[location.place];
    if (BufferBoard::offered(location.version) && mapped.version == location.version &&
        location.offset <= mapped.bytes && bytes <= mapped.bytes - location.offset)
      return mapped.at + location.offset;
  }
  return Error{.code = Code::remote, .what = "a rank named device memory that it has not offered", .peer = rank};
}

}  // namespace tutti::cuda
