#include "cuda/window_table.h"

#include <cstring>

#include "cuda/buffer_board.h"
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

}  // namespace tutti::cuda
