// What an engine's kernels report when they give up.
#include <atomic>

#include <fmt/format.h>

#include "cuda/engine.h"

namespace tutti::cuda {

/// The record that says most: calls that differ, then a limit that passed.
Engine::Found Engine::worst_record() const {
  Found found;
  if (std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(shared_.host()))
          .load(std::memory_order_acquire) == 0)
    return found;
  for (std::size_t i = 0; i < local_ranks_.size(); ++i)
    for (int channel = 0; channel < channels_; ++channel) {
      auto& record = records(shared_.host(), i)[channel];
      const std::uint32_t state = std::atomic_ref<std::uint32_t>(record.state).load(std::memory_order_acquire);
      static_assert(device::ErrorRecord::aborted < device::ErrorRecord::late &&
                    device::ErrorRecord::late < device::ErrorRecord::counts &&
                    device::ErrorRecord::counts < device::ErrorRecord::differs);
      if (state > found.state) found = {.record = &record, .state = state, .rank = shape_.local[i], .channel = channel};
    }
  return found;
}

std::optional<Error> Engine::trouble() const {
  const Found found = worst_record();
  if (found.record == nullptr) return std::nullopt;
  const bool late = found.state == device::ErrorRecord::late;
  const bool differs = found.state == device::ErrorRecord::differs;
  if (found.state == device::ErrorRecord::counts)
    return Error{
        .code = Code::invalid_usage,
        .what = fmt::format("the counts of two ranks differ: rank {} sends {} bytes to rank {}, which expects {} "
                            "(found by the kernel of rank {})",
                            found.record->peer, found.record->theirs, found.rank, found.record->own, found.rank),
        .peer = static_cast<int>(found.record->peer)};
  const std::int64_t limit_ms = shape_.limit_ns / 1'000'000;
  return Error{.code = late      ? Code::timeout
                       : differs ? Code::invalid_usage
                                 : Code::remote,
               .what = fmt::format("the kernel of rank {} on GPU {} gave up while it waited for rank {} on channel {} "
                                   "at step {}: {}",
                                   found.rank, gpu_->ordinal(), found.record->peer, found.channel, found.record->step,
                                   late      ? fmt::format("nothing came for {} ms (TUTTI_TIMEOUT_MS)", limit_ms)
                                   : differs ? "that rank makes another call"
                                             : "the communicator was aborted"),
               .peer = static_cast<int>(found.record->peer),
               .channel = found.channel,
               .step = static_cast<int>(found.record->step)};
}

std::optional<Engine::Difference> Engine::difference() const {
  const Found found = worst_record();
  if (found.state != device::ErrorRecord::differs) return std::nullopt;
  return Difference{.rank = found.rank,
                    .peer = static_cast<Rank>(found.record->peer),
                    .own = found.record->own,
                    .theirs = found.record->theirs};
}

}  // namespace tutti::cuda
