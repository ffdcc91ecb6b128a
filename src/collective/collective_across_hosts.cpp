#include "collective/collective_across_hosts.h"

#include <fmt/format.h>

namespace tutti {

Result<Progress> CollectiveAcrossHosts::advance() {
  auto progress = [this]() -> Result<Progress> {
    switch (state_) {
      case State::enter: return enter();
      case State::counts: return exchange_counts();
      case State::run: return after(run_.under_way().advance());
      case State::done: break;
    }
    return Progress::done;
  }();
  if (progress) {
    if (*progress != Progress::blocked) stall_.note_move();
    return progress;
  }
  abandon(progress.error());
  return communicator_.failure().error();
}

Result<Progress> CollectiveAcrossHosts::enter() {
  TUTTI_TRY(run_.begin());
  communicator_.marks().sign(run_.sequence(), request_.signature());
  if (!request_.layout) return start();
  counts_.emplace(communicator_, request_, run_.sequence());
  state_ = State::counts;
  return Progress::moved;
}

Result<Progress> CollectiveAcrossHosts::exchange_counts() {
  auto progress = counts_->advance();
  if (!progress || *progress != Progress::done) return progress;
  run_.set_largest_count(counts_->largest());
  counts_.reset();
  return start();
}

Result<Progress> CollectiveAcrossHosts::start() {
  const Plan& plan = run_.choose(Access::slots);
  TUTTI_TRY(run_.start(plan, /*factors=*/false));
  state_ = State::run;
  return Progress::moved;
}

/// What an advance of the run makes of the call.
Result<Progress> CollectiveAcrossHosts::after(Result<Progress> moved) {
  if (moved && *moved == Progress::done) {
    run_.finish();
    communicator_.order().note_completed(run_.sequence());
    state_ = State::done;
  }
  return moved;
}

/// Checks whether ranks have ended or failed before they had completed this call, or whether the rank that the call
/// waits for is gone. Messages that it sent before are received first.
Result<void> CollectiveAcrossHosts::poll_peers() {
  if (run_.sequence() == 0 || state_ == State::done) return {};
  if (auto failure = failure_in_any(communicator_, run_.sequence())) return *std::move(failure);
  const Rank rank = waits_for();
  stall_.look(communicator_.process().system.now_ns(),
              communicator_.failure().gone().any() ? coming_from(rank) : Coming{});
  if (auto lost = stalled_by_loss()) return *std::move(lost);
  if (rank < 0) return {};
  auto gone = obstacle(communicator_, rank, &stall_, [this] { return where(); });
  if (!gone) return {};
  auto moved = TUTTI_TRY(state_ == State::counts ? exchange_counts() : after(run_.under_way().advance()));
  if (moved != Progress::blocked || waits_for() != rank) return {};
  return *std::move(gone);
}

/// On all channels, of which some may have fallen back to a slower wire.
Coming CollectiveAcrossHosts::coming_from(Rank rank) const {
  if (rank < 0) return {};
  Coming all{.at_once = true};
  for (const Channel& channel : communicator_.links().channels().of_collectives())
    if (const auto& receiver = channel.receivers[static_cast<std::size_t>(rank)]) {
      const Coming one = coming(*receiver);
      all = {.bytes = all.bytes + one.bytes, .at_once = all.at_once && one.at_once};
    }
  return all;
}

/// Whether a lost rank keeps this call from going on, although it waits for another one. No rank can have completed a
/// call in which each needs all others before all of them were in it, and such a call does not stop for long then: not
/// for several times as long as it took so far, which on a slow network may be seconds a step. In other calls a rank
/// that has not come yet may be all that is waited for.
std::optional<Error> CollectiveAcrossHosts::stalled_by_loss() const {
  constexpr std::int64_t times = 4;
  const bool in_turns = rooted(request_.collective) || prefixes(request_.collective);
  if (in_turns || !communicator_.failure().gone().any()) return std::nullopt;
  if (stall_.ns() < next_call_ns + times * stall_.moved_for_ns()) return std::nullopt;
  return failure_before(communicator_, run_.sequence());
}

Rank CollectiveAcrossHosts::waits_for() const {
  if (counts_) return counts_->waiting_for();
  return state_ == State::run ? run_.waiting_for() : -1;
}

std::int64_t CollectiveAcrossHosts::poll_set(std::vector<PollItem>& items) const {
  const bool awaited = communicator_.links().channels().opening(items);
  if (counts_) counts_->poll_set(items);
  if (state_ == State::run) run_.under_way().poll_set(items);
  return communicator_.links().poll_deadline_ns(awaited);
}

std::string CollectiveAcrossHosts::where() const {
  if (!counts_) return run_.name() + run_.position_text();
  const Rank rank = counts_->waiting_for();
  return run_.name() + ", exchanging counts" + (rank < 0 ? "" : fmt::format(", waiting for rank {}", rank));
}

}  // namespace tutti
