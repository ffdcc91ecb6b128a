// Whether an engine's kernels have ended, and what they report when they give up.
#include <atomic>

#include <fmt/format.h>

#include "cuda/engine.h"
#include "plan/amount.h"

namespace tutti::cuda {

/// The record that says most: calls that differ, then a limit that passed.
Engine::Found Engine::worst_record() const {
  Found found;
  if (std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(shared_.host()))
          .load(std::memory_order_acquire) != device::AbortWord::all_ends)
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

namespace {

/// The receiver of a message finds that its sender sends another.
Error different_messages(const device::ErrorRecord& record, Rank rank) {
  constexpr std::uint32_t types = 65536;
  return {
      .code = Code::invalid_usage,
      .what = fmt::format("rank {} sends {}, but rank {} receives {}", record.peer,
                          amount(record.theirs, record.types / types), rank, amount(record.own, record.types % types)),
      .peer = static_cast<int>(record.peer)};
}

/// What the kernel waited for, behind "waited for rank 1 on channel 2".
std::string stage_text(const device::ErrorRecord& record) {
  if (record.message == 0) return fmt::format("at step {}", record.step);
  const bool sends = record.verb == static_cast<std::uint32_t>(Verb::acquire);
  return fmt::format("{} tile {} of a message", sends ? "to receive" : "to send", record.tile);
}

}  // namespace

/// What one of them sends is not what the other expects.
Error Engine::different_counts(const Found& found) {
  const device::ErrorRecord& record = *found.record;
  if (record.message != 0) return different_messages(record, found.rank);
  const auto peer = static_cast<Rank>(record.peer);
  const bool sends = record.verb == static_cast<std::uint32_t>(Verb::acquire);
  return Error{
      .code = Code::invalid_usage,
      .what = fmt::format("the counts of two ranks differ: rank {} sends {} bytes to rank {}, which expects {} "
                          "(found by the kernel of rank {})",
                          sends ? found.rank : peer, sends ? record.own : record.theirs, sends ? peer : found.rank,
                          sends ? record.theirs : record.own, found.rank),
      .peer = static_cast<int>(peer)};
}

std::optional<Error> Engine::trouble() const {
  const Found found = worst_record();
  if (found.record == nullptr) return std::nullopt;
  const bool late = found.state == device::ErrorRecord::late;
  const bool differs = found.state == device::ErrorRecord::differs;
  if (found.state == device::ErrorRecord::counts) return different_counts(found);
  const std::int64_t limit_ms = shape_.limit_ns / 1'000'000;
  return Error{
      .code = late      ? Code::timeout
              : differs ? Code::invalid_usage
                        : Code::remote,
      .what = fmt::format("the kernel of rank {} on GPU {} gave up while it waited for rank {} on channel {} "
                          "{}: {}",
                          found.rank, gpu_->ordinal(), found.record->peer, found.channel, stage_text(*found.record),
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

/// Nobody knows when a graph is replayed. An engine whose kernels fail does nothing any more.
bool Engine::is_quiet() const {
  if (graphs_.use_count() > 1) return false;
  const auto current = Current::enter(*gpu_);
  return !current || gpu_->api().event_query(launched_.ended.get()) != status::not_ready;
}

Result<bool> Engine::idle() {
  const auto current = TUTTI_TRY(Current::enter(*gpu_));
  const Status status = gpu_->api().event_query(launched_.ended.get());
  if (status == status::not_ready) return false;
  TUTTI_TRY(gpu_->check(status, "cuEventQuery"));
  return true;
}

}  // namespace tutti::cuda
