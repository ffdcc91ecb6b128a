#include "collective/collective_across_hosts.h"

#include "comm/peer_failure.h"

namespace tutti {

Result<Progress> CollectiveAcrossHosts::advance() {
  auto progress = [this]() -> Result<Progress> {
    switch (state_) {
      case State::enter: return enter();
      case State::counts: return exchange_counts();
      case State::run: return run();
      case State::done: break;
    }
    return Progress::done;
  }();
  if (progress) return progress;
  abandon(progress.error());
  return communicator_.failure();
}

Result<Progress> CollectiveAcrossHosts::enter() {
  if (auto begun = run_.begin(); !begun) return std::move(begun).error();
  communicator_.sign(run_.sequence(), request_.signature());
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
  if (auto started = run_.start(plan, /*factors=*/false); !started) return std::move(started).error();
  state_ = State::run;
  return Progress::moved;
}

Result<Progress> CollectiveAcrossHosts::run() {
  auto progress = run_.advance();
  if (progress && *progress == Progress::done) state_ = State::done;
  return progress;
}

/// Checks whether the rank that the call waits for has left, if it is on this host; a rank of another host that leaves
/// closes its connections. Messages that the rank sent before it left are received first.
Result<void> CollectiveAcrossHosts::poll_peers() {
  if (state_ != State::run) return {};
  const Rank rank = run_.waiting_for();
  if (rank < 0 || communicator_.members().peers[rank].remote() || !has_left(communicator_, rank)) return {};
  auto moved = run();
  if (!moved) return std::move(moved).error();
  if (*moved != Progress::blocked || run_.waiting_for() != rank) return {};
  return left_before(communicator_, rank, where());
}

std::int64_t CollectiveAcrossHosts::poll_set(std::vector<PollItem>& items) const {
  const bool awaited = communicator_.channels().opening(items);
  if (counts_) counts_->poll_set(items);
  if (state_ == State::run) run_.poll_set(items);
  return communicator_.nap_until(awaited);
}

void CollectiveAcrossHosts::abandon(const Error& reason) {
  communicator_.fail(reason);
}

std::string CollectiveAcrossHosts::where() const {
  return run_.name() + (counts_ ? ", exchanging counts" : run_.spot());
}

}  // namespace tutti
