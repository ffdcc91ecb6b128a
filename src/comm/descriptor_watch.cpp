#include "comm/descriptor_watch.h"

#include "comm/peer_failure.h"

namespace tutti {
namespace {

MadeCall last_call(const CallDescriptors& descriptors, Rank rank) {
  const CallMark last = descriptors.last(rank);
  return {rank, last.sequence, last.signature};
}

/// Finds ranks that left without making call `sequence`, which this rank has made.
Result<void> check_leavers(Communicator& communicator, std::uint64_t sequence) {
  CallDescriptors& descriptors = communicator.links().descriptors();
  for (Rank rank = 0; rank < communicator.ranks(); ++rank) {
    if (rank == communicator.rank() || !has_left(communicator, rank)) continue;
    auto descriptor = descriptors.open(rank, sequence);
    if (!descriptor) return with_calls(descriptors, {communicator.rank(), sequence}, std::move(descriptor).error());
    if (*descriptor == nullptr)
      return left_before(communicator.members().describe(rank), last_call(descriptors, rank),
                         last_call(descriptors, communicator.rank()));
  }
  return {};
}

/// Waits at most `limit_ns` for the descriptors of the peers' calls up to this rank's last one.
Result<void> check_last(Communicator& communicator, std::int64_t limit_ns) {
  constexpr std::int64_t poll_timeout_ns = 200'000;
  CallDescriptors& descriptors = communicator.links().descriptors();
  const std::uint64_t latest = descriptors.published();
  System& system = communicator.process().system;
  const std::int64_t end_ns = system.now_ns() + limit_ns;
  for (;;) {
    if (auto looked = descriptors.look(); !looked)
      return with_calls(descriptors, {communicator.rank(), 0}, std::move(looked).error());
    for (Rank rank = 0; rank < communicator.ranks(); ++rank)
      if (const MadeCall theirs = last_call(descriptors, rank); theirs.sequence > latest)
        return more_calls(last_call(descriptors, communicator.rank()), theirs);
    if (descriptors.seen_all()) return {};
    TUTTI_TRY(check_leavers(communicator, latest));
    if (communicator.failed() || system.now_ns() >= end_ns) return {};
    system.poll({}, poll_timeout_ns);
  }
}

}  // namespace

Error with_calls(const CallDescriptors& descriptors, Reporter by, Error error) {
  const std::uint64_t at = descriptors.differing();
  if (error.code != Code::invalid_usage || at == 0) return error;
  return mismatch_report(descriptors.calls(at), at, by, std::move(error));
}

Result<void> check_descriptors(Communicator& communicator, std::uint64_t sequence, bool over) {
  CallDescriptors& descriptors = communicator.links().descriptors();
  if (auto looked = descriptors.look(); !looked)
    return with_calls(descriptors, {communicator.rank(), sequence}, std::move(looked).error());
  if (over) return {};
  if (auto failure = failure_in_any(communicator, sequence)) return *std::move(failure);
  return check_leavers(communicator, sequence);
}

Result<void> check_before_leaving(Communicator& communicator) {
  constexpr std::int64_t limit_ns = 500'000'000;
  if (auto known = communicator.failure().leave()) return *std::move(known);
  auto* const comparison = communicator.marks().comparison();
  TUTTI_TRY(comparison != nullptr ? comparison->check_before_leaving(limit_ns) : check_last(communicator, limit_ns));
  // A rank that has found a mismatch makes no more calls to compare.
  if (auto failure = failure_of_any(communicator); failure && failure->code == Code::invalid_usage)
    return *std::move(failure);
  return {};
}

}  // namespace tutti
