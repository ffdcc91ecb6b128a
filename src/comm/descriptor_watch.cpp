#include "comm/descriptor_watch.h"

#include <fmt/format.h>

namespace tutti {
namespace {

MadeCall last_call(const CallDescriptors& lines, Rank rank) {
  const CallMark last = lines.last(rank);
  return {rank, last.sequence, last.signature};
}

bool has_left(const Communicator& communicator, Rank rank) {
  const auto& header = communicator.members().peers[rank].area.header();
  return header.state.load(std::memory_order_acquire) == RankState::closed;
}

/// Ranks that left before this one made its call `sequence`, and have no line of it.
Result<void> look_for_leavers(Communicator& communicator, std::uint64_t sequence) {
  CallDescriptors& lines = communicator.lines();
  for (Rank rank = 0; rank < communicator.ranks(); ++rank) {
    if (rank == communicator.rank() || !has_left(communicator, rank)) continue;
    auto line = lines.open(rank, sequence);
    if (!line) return with_calls(lines, {communicator.rank(), sequence}, std::move(line).error());
    if (*line == nullptr)
      return left_before(communicator.describe(rank), last_call(lines, rank), last_call(lines, communicator.rank()));
  }
  return {};
}

}  // namespace

Error with_calls(const CallDescriptors& lines, Reporter by, Error error) {
  const std::uint64_t at = lines.differing();
  if (error.code != Code::invalid_usage || at == 0) return error;
  return mismatch_report(lines.calls(at), at, by, std::move(error));
}

Result<void> look_at_descriptors(Communicator& communicator, std::uint64_t sequence, bool over) {
  CallDescriptors& lines = communicator.lines();
  if (auto looked = lines.look(); !looked)
    return with_calls(lines, {communicator.rank(), sequence}, std::move(looked).error());
  return over ? Result<void>() : look_for_leavers(communicator, sequence);
}

Result<void> look_before_leaving(Communicator& communicator, std::int64_t limit_ns) {
  constexpr std::int64_t nap_ns = 200'000;
  CallDescriptors& lines = communicator.lines();
  const std::uint64_t latest = lines.published();
  System& system = communicator.process().system;
  const std::int64_t end_ns = system.now_ns() + limit_ns;
  for (;;) {
    if (auto looked = lines.look(); !looked)
      return with_calls(lines, {communicator.rank(), 0}, std::move(looked).error());
    for (Rank rank = 0; rank < communicator.ranks(); ++rank)
      if (const MadeCall theirs = last_call(lines, rank); theirs.sequence > latest)
        return more_calls(last_call(lines, communicator.rank()), theirs);
    if (lines.seen_all()) return {};
    if (auto left = look_for_leavers(communicator, latest); !left) return left;
    if (communicator.failed() || system.now_ns() >= end_ns) return {};
    system.poll({}, nap_ns);
  }
}

}  // namespace tutti
