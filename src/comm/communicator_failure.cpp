// How a communicator fails: once, with the best known cause, and with notice to all its ranks.
#include <cerrno>
#include <utility>

#include "base/fixed_text.h"
#include "base/uncancelled.h"
#include "comm/communicator.h"
#include "comm/peer_failure.h"

namespace tutti {
namespace {

/// Replaces an error that is only a consequence by its cause, if the cause is known.
Error understood(Communicator& communicator, Error error) {
  if (error.code != Code::remote && error.sys_errno == 0) return error;
  if (error.sys_errno == EBADF) return lost_descriptors(communicator);
  // Ranks that share a GPU share its errors, so report the GPU's error even if another rank reported it first.
  if (const auto* const device = communicator.device(); device != nullptr && error.code == Code::remote)
    if (auto cause = device->cause()) return *std::move(cause);
  if (error.peer < 0 || error.peer >= communicator.ranks() || error.peer == communicator.rank()) return error;
  // Some calls learn of a process's end when they map or copy its memory. It may have left the reason before it ended.
  const auto& peer = communicator.members().peers[error.peer];
  const auto state = peer.area.header().state_now();
  // What a rank that has failed or is lost does not finish is a consequence of that.
  if (error.code == Code::remote && has_failed(state))
    if (auto cause = failure_of(communicator, error.peer)) return *std::move(cause);
  // ECONNREFUSED: nobody serves its segments any more, as after exec.
  const bool is_gone = error.sys_errno == ESRCH || error.sys_errno == ECONNREFUSED;
  if (peer.process && state != RankState::closed && (is_gone || peer.process->ended()))
    return failure_of(communicator, error.peer).value_or(lost(communicator, error.peer));
  if (auto* const comparison = communicator.marks().comparison(); comparison != nullptr && state == RankState::closed)
    if (auto early = comparison->left_early(error.peer)) return *std::move(early);
  return error;
}

/// The loss of a rank ends only what needs that rank. All else ends the communicator, and so it does at ranks that hear
/// of it from others.
bool ends_all(const Communicator& communicator, const Error& error) {
  if (error.code != Code::remote) return true;
  for (Rank rank = 0; rank < communicator.ranks(); ++rank)
    if (rank != communicator.rank() && !completes_calls(communicator, rank)) return true;
  return false;
}

}  // namespace

void Communicator::fail(Error error) {
  const Uncancelled whole;
  auto& header = members_.area->area.header();
  // If no call is under way here, the loss of a peer harms nobody: log it as INFO, not as a warning. Nor does it if it
  // was known before the call that fails because of it.
  const bool quiet = error.code == Code::remote && (order_.idle() || failure_.lost_at_rest());
  error = understood(*this, std::move(error));
  // Under the lock, so that peers can see the failure also when a second, concurrent call of fail returns.
  const Error* const first = failure_.set(std::move(error), [&](const Error& set) {
    header.failure.store(static_cast<std::uint32_t>(set.code), std::memory_order_relaxed);
    header.culprit.store(set.peer, std::memory_order_relaxed);
    header.ends_all.store(ends_all(*this, set) ? 1 : 0, std::memory_order_relaxed);
    put_text(header.message, set.words());
    auto open = RankState::open;
    header.state.compare_exchange_strong(open, RankState::failed, std::memory_order_seq_cst);
    // Before failed(): who sees it ends its call and releases kernels, which must find the abort word by then. After
    // the failure is set: a kernel that finds the word and gives up must not become the cause.
    if (device_) device_->abort();
  });
  if (first == nullptr) return;
  if (members_.control) members_.control->announce(RankEnd::read(header));
  if (quiet)
    process_.log.info(LogTopic::coll, members_.who, "{}", first->text());
  else
    process_.log.warn(members_.who, "{}", first->text());
  header.doorbell.ring(process_.system, /*oversubscribed=*/true);
  links_.ring_all();
}

void Communicator::abort() {
  auto& header = members_.area->area.header();
  auto open = RankState::open;
  header.state.compare_exchange_strong(open, RankState::aborted);
  fail(Error{.code = Code::invalid_usage, .what = "the communicator was aborted by tuttiCommAbort"});
}

Error Communicator::report_failure() {
  failure_.mark_reported();
  Error error = failure_.error();
  if (device_) device_->explain_ending(error);
  return error;
}

}  // namespace tutti
