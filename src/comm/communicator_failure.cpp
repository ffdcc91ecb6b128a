// How a communicator fails: once, with what is known best, and so that all its ranks hear of it.
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/fixed_text.h"
#include "base/uncancelled.h"
#include "comm/call_comparison.h"
#include "comm/communicator.h"
#include "comm/descriptor_watch.h"
#include "comm/peer_failure.h"

namespace tutti {

/// What a call meets may only follow from something that is known better elsewhere.
Error Communicator::understood(Error error) const {
  if (error.code != Code::remote && error.sys_errno == 0) return error;
  // What a call on the GPU met is this rank's own failure too, whoever of those that share the GPU tells it first.
  if (device_ && error.code == Code::remote)
    if (auto cause = device_->cause()) return *std::move(cause);
  if (error.peer < 0 || error.peer >= ranks() || error.peer == rank()) return error;
  // Mapping or copying memory of a process that is gone is how some calls learn of its death; it may have said why
  // before it went.
  const auto& peer = members_.peers[error.peer];
  const auto state = peer.area.header().state.load(std::memory_order_acquire);
  if (peer.process && state != RankState::closed && (error.sys_errno == ESRCH || peer.process->ended()))
    return failure_of(*this, error.peer).value_or(lost(error.peer));
  if (comparison_ && state == RankState::closed)
    if (auto early = comparison_->left_early(error.peer)) return *std::move(early);
  return error;
}

void Communicator::fail(Error error) {
  const Uncancelled whole;
  auto& header = members_.area->area.header();
  // Where no call is under way nobody is harmed by a rank that goes.
  const bool quiet = error.code == Code::remote && idle();
  error = understood(std::move(error));
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_) return;
    failure_ = std::make_unique<Error>(std::move(error));
    // Under the lock: on return from a second failure too, peers can see that there is one.
    header.failure.store(static_cast<std::uint32_t>(failure_->code), std::memory_order_relaxed);
    header.culprit.store(failure_->peer, std::memory_order_relaxed);
    put_text(header.message, failure_->what);
    auto open = RankState::open;
    header.state.compare_exchange_strong(open, RankState::failed, std::memory_order_seq_cst);
  }
  failed_.store(true, std::memory_order_release);
  if (members_.control) {
    const RankState state = header.state.load(std::memory_order_acquire);
    members_.control->announce(state, failure_->code, failure_->peer, failure_->what);
  }
  if (device_) device_->abort();
  if (quiet)
    process_.log.info(LogTopic::coll, who_, "{}", failure_->text());
  else
    process_.log.warn(who_, "{}", failure_->text());
  header.doorbell.ring(process_.system, /*oversubscribed=*/true);
  ring_all();
}

void Communicator::abort() {
  auto& header = members_.area->area.header();
  auto open = RankState::open;
  header.state.compare_exchange_strong(open, RankState::aborted);
  fail(Error{.code = Code::invalid_usage, .what = "the communicator was aborted by tuttiCommAbort"});
}

Error Communicator::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return *failure_;
}

Error Communicator::lost(Rank rank, std::string_view why) const {
  return {.code = Code::remote, .what = fmt::format("{} lost: {}", describe(rank), why), .peer = rank};
}

Result<void> Communicator::look_before_leaving() {
  constexpr std::int64_t limit_ns = 500'000'000;
  auto alike = comparison_ ? comparison_->look_before_leaving(limit_ns) : tutti::look_before_leaving(*this, limit_ns);
  if (!alike) return alike;
  // Of a rank that has found a mismatch nothing more is to be compared.
  if (auto failure = failure_of_any(*this); failure && failure->code == Code::invalid_usage) return *std::move(failure);
  return {};
}

}  // namespace tutti
