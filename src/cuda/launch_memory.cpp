#include "cuda/launch_memory.h"

#include <algorithm>

#include "cuda/areas.h"

namespace tutti::cuda {
namespace {

constexpr std::size_t in_flight_most = 64;

}  // namespace

Result<LaunchMemory> LaunchMemory::make(const SharedGpu& gpu, bool frees_late, int tables) {
  LaunchMemory made;
  made.gpu_ = gpu;
  made.frees_late_ = frees_late;
  for (int i = 0; i < tables; ++i) made.tables_.push_back(TUTTI_TRY(made.make_table(/*bytes=*/0, /*captured=*/false)));
  return made;
}

/// Replaces `memory` by a larger allocation if it has fewer than `bytes`.
Result<void> LaunchMemory::enlarge(Buffer& memory, std::size_t bytes) {
  if (memory != nullptr && memory->bytes() >= bytes) return {};
  auto larger = TUTTI_TRY(DeviceMemory::allocate(gpu_, std::max(bytes, memory == nullptr ? 0 : 2 * memory->bytes())));
  if (memory != nullptr) in_flight_.push_back(memory);
  memory = std::make_shared<const DeviceMemory>(std::move(larger));
  return {};
}

Result<void> LaunchMemory::make_buffers(std::size_t scratch_bytes, std::size_t staging_bytes, std::size_t ranks) {
  scratch_bytes_ = round_up(scratch_bytes);
  staging_bytes_ = round_up(staging_bytes);
  if (scratch_bytes > 0) TUTTI_TRY(enlarge(scratch_, scratch_bytes_ * ranks));
  if (staging_bytes > 0) TUTTI_TRY(enlarge(staging_, staging_bytes_ * ranks));
  return {};
}

/// The oldest one if its kernel has ended and it is large enough, otherwise another. A graph gets one of its own.
Result<LaunchMemory::Table> LaunchMemory::take_table(std::size_t bytes, bool captured) {
  if (!captured && !tables_.empty()) {
    const Status status = gpu_->api().event_query(tables_.front().ended.get());
    if (status == status::success) {
      Table oldest = std::move(tables_.front());
      tables_.erase(tables_.begin());
      if (oldest.memory->bytes() >= bytes) return oldest;
      in_flight_.push_back(std::move(oldest.memory));  // freed late: to free it now may wait for kernels
    } else if (status != status::not_ready) {
      TUTTI_TRY(gpu_->check(status, "cuEventQuery"));
    }
  }
  return make_table(bytes, captured);
}

Result<LaunchMemory::Table> LaunchMemory::make_table(std::size_t bytes, bool captured) const {
  Table made;
  constexpr std::size_t usual_bytes = 48 * 1024;  // transfers of 16 local ranks, or 2,048 messages
  made.memory =
      std::make_shared<const PinnedMemory>(TUTTI_TRY(PinnedMemory::allocate(gpu_, std::max(bytes, usual_bytes))));
  if (captured) return made;
  made.ended = TUTTI_TRY(OwnEvent::create(gpu_));
  return made;
}

Result<void> LaunchMemory::put_back(Table table, Stream stream) {
  auto recorded = gpu_->record(table.ended.get(), stream);
  if (recorded)
    tables_.push_back(std::move(table));
  else
    keep(std::move(table.memory));  // its event would say that the kernel has ended
  return recorded;
}

void LaunchMemory::keep_plans(Parts parts, Event ended) {
  if (!frees_late_ && in_flight_.size() > in_flight_most && gpu_->api().event_query(ended) == status::success)
    in_flight_.clear();
  for (const Part& part : parts)
    for (const auto& plan : {part.plan, part.windows, part.reduction.combine.uploaded, part.reduction.scale.uploaded})
      if (plan && std::ranges::find(in_flight_, std::static_pointer_cast<const void>(plan)) == in_flight_.end())
        in_flight_.push_back(plan);
}

}  // namespace tutti::cuda
