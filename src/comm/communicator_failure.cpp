// How a communicator fails: once, with the best known cause, and with notice to all its ranks.
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

/// Replaces an error that is only a consequence by its cause, if the cause is known.
Error Communicator::understood(Error error) const {
  if (error.code != Code::remote && error.sys_errno == 0) return error;
  if (error.sys_errno == EBADF) return lost_descriptors();
  // Ranks that share a GPU share its errors, so report the GPU's error even if another rank reported it first.
  if (device_ && error.code == Code::remote)
    if (auto cause = device_->cause()) return *std::move(cause);
  if (error.peer < 0 || error.peer >= ranks() || error.peer == rank()) return error;
  // Some calls learn of a process's end when they map or copy its memory. It may have left the reason before it ended.
  const auto& peer = members_.peers[error.peer];
  const auto state = peer.area.header().state_now();
  // What a rank that has failed or is lost does not finish is a consequence of that.
  if (error.code == Code::remote && has_failed(state))
    if (auto cause = failure_of(*this, error.peer)) return *std::move(cause);
  // ECONNREFUSED: nobody serves its segments any more, as after exec.
  const bool is_gone = error.sys_errno == ESRCH || error.sys_errno == ECONNREFUSED;
  if (peer.process && state != RankState::closed && (is_gone || peer.process->ended()))
    return failure_of(*this, error.peer).value_or(lost(error.peer));
  if (comparison_ && state == RankState::closed)
    if (auto early = comparison_->left_early(error.peer)) return *std::move(early);
  return error;
}

void Communicator::fail(Error error) {
  const Uncancelled whole;
  auto& header = members_.area->area.header();
  // If no call is under way here, the loss of a peer harms nobody: log it as INFO, not as a warning. Nor does it if it
  // was known before the call that fails because of it.
  const bool quiet = error.code == Code::remote && (idle() || lost_at_rest_.load(std::memory_order_relaxed));
  error = understood(std::move(error));
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_) return;
    failure_ = std::make_unique<Error>(std::move(error));
    // Under the lock, so that peers can see the failure also when a second, concurrent call of fail returns.
    header.failure.store(static_cast<std::uint32_t>(failure_->code), std::memory_order_relaxed);
    header.culprit.store(failure_->peer, std::memory_order_relaxed);
    header.ends_all.store(ends_all(*failure_) ? 1 : 0, std::memory_order_relaxed);
    put_text(header.message, failure_->words());
    auto open = RankState::open;
    header.state.compare_exchange_strong(open, RankState::failed, std::memory_order_seq_cst);
    // Before failed_: who sees it ends its call and releases kernels, which must find the abort word by then. After
    // failure_: a kernel that finds the word and gives up must not become the cause.
    if (device_) device_->abort();
    failed_.store(true, std::memory_order_release);
  }
  if (members_.control) members_.control->announce(RankEnd::read(header));
  if (quiet)
    process_.log.info(LogTopic::coll, who_, "{}", failure_->text());
  else
    process_.log.warn(who_, "{}", failure_->text());
  header.doorbell.ring(process_.system, /*oversubscribed=*/true);
  ring_all();
}

/// The loss of a rank ends only what needs that rank. All else ends the communicator, and so it does at ranks that hear
/// of it from others.
bool Communicator::ends_all(const Error& error) const {
  if (error.code != Code::remote) return true;
  for (Rank rank = 0; rank < ranks(); ++rank)
    if (rank != this->rank() && !completes_calls(*this, rank)) return true;
  return false;
}

void Communicator::abort() {
  auto& header = members_.area->area.header();
  auto open = RankState::open;
  header.state.compare_exchange_strong(open, RankState::aborted);
  fail(Error{.code = Code::invalid_usage, .what = "the communicator was aborted by tuttiCommAbort"});
}

void Communicator::note_loss(Error error) {
  const std::lock_guard lock(failure_mutex_);
  if (!loss_ && idle()) lost_at_rest_.store(true, std::memory_order_relaxed);
  if (!loss_) loss_ = std::make_unique<Error>(std::move(error));
}

std::optional<Error> Communicator::first_error() const {
  const std::lock_guard lock(failure_mutex_);
  if (failure_) return *failure_;
  if (loss_) return *loss_;
  return std::nullopt;
}

Error Communicator::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return *failure_;
}

Error Communicator::explained_failure() const {
  Error error = failure();
  if (device_) device_->explain_ending(error);
  return error;
}

/// Ranks of other hosts see the connections close before this can be told, and say that this rank is lost.
Error Communicator::lost_descriptors() const {
  return {.code = Code::system,
          .what = fmt::format("{} has lost its descriptors: the program has closed some that tutti uses (closefrom, "
                              "close_range, or close of numbers that are not its own)",
                              describe(rank())),
          .peer = rank()};
}

/// A process that lives and serves its peers no more is no rank any more, and was not killed either. One that is being
/// ended may still seem to live.
Error Communicator::lost(Rank rank) const {
  const auto& process = members_.peers[static_cast<std::size_t>(rank)].process;
  const bool lives = process && !process->ended();
  if (!lives) return lost(rank, {.kind = LossKind::ended});
  return lost(rank, {.kind = gone_.is_mute(rank) ? LossKind::mute : LossKind::replaced});
}

Result<void> Communicator::check_before_leaving() {
  constexpr std::int64_t limit_ns = 500'000'000;
  if (auto loss = first_error()) {
    left_after_loss_ = true;
    return *std::move(loss);
  }
  auto alike = comparison_ ? comparison_->check_before_leaving(limit_ns) : tutti::check_before_leaving(*this, limit_ns);
  if (!alike) return alike;
  // A rank that has found a mismatch makes no more calls to compare.
  if (auto failure = failure_of_any(*this); failure && failure->code == Code::invalid_usage) return *std::move(failure);
  return {};
}

}  // namespace tutti
