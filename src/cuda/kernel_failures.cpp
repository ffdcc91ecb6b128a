#include "cuda/kernel_failures.h"

#include <atomic>

#include <fmt/format.h>

#include "plan/action.h"
#include "plan/amount.h"

namespace tutti::cuda {
namespace {

std::atomic_ref<std::uint32_t> word(std::byte* at) {
  return std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(at));
}

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

/// What one of them sends is not what the other expects.
Error different_counts(const device::ErrorRecord& record, Rank rank) {
  if (record.message != 0) return different_messages(record, rank);
  const auto peer = static_cast<Rank>(record.peer);
  const bool sends = record.verb == static_cast<std::uint32_t>(Verb::acquire);
  return Error{
      .code = Code::invalid_usage,
      .what = fmt::format("the counts of two ranks differ: rank {} sends {} bytes to rank {}, which expects {} "
                          "(found by the kernel of rank {})",
                          sends ? rank : peer, sends ? record.own : record.theirs, sends ? peer : rank,
                          sends ? record.theirs : record.own, rank),
      .peer = static_cast<int>(peer)};
}

}  // namespace

Result<KernelFailures> KernelFailures::make(const SharedGpu& gpu, std::vector<Rank> local, int channels,
                                            std::int64_t limit_ns) {
  KernelFailures made;
  const std::size_t records = local.size() * static_cast<std::size_t>(channels);
  made.shared_ = TUTTI_TRY(PinnedMemory::allocate(gpu, records_offset + records * sizeof(device::ErrorRecord)));
  made.local_ = std::move(local);
  made.channels_ = channels;
  made.limit_ns_ = limit_ns;
  made.ordinal_ = gpu->ordinal();
  return made;
}

void KernelFailures::abort() {
  word(shared_.host()).store(device::AbortWord::all_ends, std::memory_order_release);
}

void KernelFailures::say_some_gone() {
  std::uint32_t before = device::AbortWord::goes_on;
  (void)word(shared_.host()).compare_exchange_strong(before, device::AbortWord::some_gone);
}

/// The record that says most: calls that differ, then a limit that passed.
KernelFailures::Found KernelFailures::worst_record() const {
  Found found;
  if (word(shared_.host()).load(std::memory_order_acquire) != device::AbortWord::all_ends) return found;
  for (std::size_t i = 0; i < local_.size(); ++i)
    for (int channel = 0; channel < channels_; ++channel) {
      auto& record = records(shared_.host(), i)[channel];
      const std::uint32_t state = std::atomic_ref<std::uint32_t>(record.state).load(std::memory_order_acquire);
      static_assert(device::ErrorRecord::aborted < device::ErrorRecord::late &&
                    device::ErrorRecord::late < device::ErrorRecord::counts &&
                    device::ErrorRecord::counts < device::ErrorRecord::differs);
      if (state > found.state) found = {.record = &record, .state = state, .rank = local_[i], .channel = channel};
    }
  return found;
}

std::optional<Error> KernelFailures::trouble() const {
  const Found found = worst_record();
  if (found.record == nullptr) return std::nullopt;
  const bool late = found.state == device::ErrorRecord::late;
  const bool differs = found.state == device::ErrorRecord::differs;
  if (found.state == device::ErrorRecord::counts) return different_counts(*found.record, found.rank);
  const std::int64_t limit_ms = limit_ns_ / 1'000'000;
  return Error{.code = late      ? Code::timeout
                       : differs ? Code::invalid_usage
                                 : Code::remote,
               .what = fmt::format("the kernel of rank {} on GPU {} gave up while it waited for rank {} on channel {} "
                                   "{}: {}",
                                   found.rank, ordinal_, found.record->peer, found.channel, stage_text(*found.record),
                                   late      ? fmt::format("nothing came for {} ms (TUTTI_TIMEOUT_MS)", limit_ms)
                                   : differs ? "that rank makes another call"
                                             : "the communicator was aborted"),
               .peer = static_cast<int>(found.record->peer),
               .channel = found.channel,
               .step = static_cast<int>(found.record->step)};
}

std::optional<KernelFailures::Difference> KernelFailures::difference() const {
  const Found found = worst_record();
  if (found.state != device::ErrorRecord::differs) return std::nullopt;
  return Difference{.rank = found.rank,
                    .peer = static_cast<Rank>(found.record->peer),
                    .own = found.record->own,
                    .theirs = found.record->theirs};
}

}  // namespace tutti::cuda
