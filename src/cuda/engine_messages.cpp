// The sends and receives of a rank that is alone in its engine: one kernel, between the other launches of the engine.
#include <algorithm>
#include <cassert>

#include "cuda/engine.h"
#include "kernels/moving.h"

namespace tutti::cuda {
namespace {

/// One for each word of the largest tile.
unsigned threads_for(std::span<const device::Message> messages, std::uint64_t channels) {
  constexpr std::uint64_t warp = 32, word = 16, least = device::block_threads_min, most = device::block_threads;
  std::uint64_t largest = 0;
  for (const device::Message& message : messages)
    largest = std::max(largest, std::min(message.bytes, device::tile_bytes(message.bytes, channels, most * word)));
  return static_cast<unsigned>(std::clamp((largest / word + warp) / warp * warp, least, most));
}

}  // namespace

Result<void> Engine::launch_messages(const MessagesJob& job) {
  assert(serves_messages() && !job.streams.empty());
  const auto current = TUTTI_TRY(Current::enter(*gpu_));
  deferred_->empty();
  const Quiet::Queueing queueing(gpu_->quiet());
  auto capture = TUTTI_TRY(capture_of(job.streams));
  const bool captured = capture.graph != nullptr;
  device::Call call{};
  Table table;
  if (job.messages.size() <= std::size(call.few_messages)) {
    std::ranges::copy(job.messages, call.few_messages);
  } else {
    table = TUTTI_TRY(take_table(job.messages.size_bytes(), captured));
    std::ranges::copy(job.messages, reinterpret_cast<device::Message*>(table.memory->host()));
    call.messages = reinterpret_cast<const device::Message*>(table.memory->device());
  }
  if (captured) TUTTI_TRY(retain(capture, {table.memory}));

  fill_common(call, message_area_);
  call.ranks = static_cast<std::uint32_t>(shape_.ranks);
  call.local_ranks = 1;
  call.channels = message_area_.channels;
  call.message_count = static_cast<std::uint32_t>(job.messages.size());
  call.local[0].links = local_ranks_[0].message_links;
  call.local[0].errors = records(shared_.device(), 0);
  call.local[0].rank = static_cast<std::uint16_t>(shape_.local[0]);
  return launch_in_order(job.streams, capture, table, [&]() -> Result<void> {
    for (const auto& [to, from, bytes] : job.copies) TUTTI_TRY(gpu_->copy(to, from, bytes, job.streams.front()));
    if (job.messages.empty()) return {};
    return start(kernels_->function(device::Body::run_plan, DataType::uint8), call,
                 threads_for(job.messages, call.channels), job.streams.front());
  });
}

}  // namespace tutti::cuda
