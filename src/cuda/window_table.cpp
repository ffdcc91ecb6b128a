#include "cuda/window_table.h"

#include <cstring>

#include "cuda/buffer_board.h"
#include "kernels/entries.h"

namespace tutti::cuda {

static_assert(device::Offer::places == BufferBoard::places_max);

Result<std::unique_ptr<WindowTable>> WindowTable::make(const SharedGpu& gpu, int ranks) {
  std::unique_ptr<WindowTable> table(new WindowTable(gpu));
  TUTTI_TRY(table->set_up(ranks));
  return table;
}

Result<void> WindowTable::set_up(int ranks) {
  const auto current = TUTTI_TRY(Current::enter(*gpu_));
  stream_ = TUTTI_TRY(OwnStream::create(gpu_));
  word_ = TUTTI_TRY(PinnedMemory::allocate(gpu_, sizeof(std::byte*)));
  auto memory =
      DeviceMemory::allocate(gpu_, static_cast<std::size_t>(ranks) * device::Offer::places * sizeof(std::byte*));
  if (!memory) return std::move(memory).error();
  memory_ = *std::move(memory);
  const Status cleared = gpu_->api().set_async(memory_.address(), 0, memory_.bytes(), stream_.get());
  TUTTI_TRY(gpu_->check(cleared, "cuMemsetD8Async"));
  return gpu_->check(gpu_->api().stream_synchronize(stream_.get()), "cuStreamSynchronize");
}

Result<void> WindowTable::set(int rank, std::uint32_t place, std::byte* at) {
  std::memcpy(word_.host(), &at, sizeof at);
  const std::size_t index = static_cast<std::size_t>(rank) * device::Offer::places + place;
  const Status queued = gpu_->api().copy_async(memory_.address() + index * sizeof at,
                                               reinterpret_cast<Address>(word_.device()), sizeof at, stream_.get());
  TUTTI_TRY(gpu_->check(queued, "cuMemcpyAsync"));
  return gpu_->check(gpu_->api().stream_synchronize(stream_.get()), "cuStreamSynchronize");
}

}  // namespace tutti::cuda
