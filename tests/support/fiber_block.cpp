#include "support/fiber_block.h"

namespace tutti::testing {
namespace {

constexpr int looks_before_abort = 5000;  // of a fiber: a body asks for abort and time at every 1024th

}  // namespace

FiberScheduler::FiberScheduler(const FiberOptions& options, std::function<void(int block, int thread)> body)
    : options_(options),
      random_(options.seed),
      memory_(options.blocks, options.threads, random_.next()),
      threads_(static_cast<std::size_t>(options.blocks * options.threads)),
      teams_(static_cast<std::size_t>(options.blocks)),
      left_(options.blocks * options.threads) {
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const int index = static_cast<int>(i);
    threads_[i].fiber =
        std::make_unique<Fiber>([body, index, threads = options.threads] { body(index / threads, index % threads); });
  }
  if (random_.chance(30)) favourite_ = random_.below(options.blocks);
  if (random_.chance(30)) victim_ = random_.below(options.blocks);
}

int FiberScheduler::pick() {
  runnable_.clear();
  int favoured = -1;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    if (!may_run(threads_[i])) continue;
    const int index = static_cast<int>(i);
    if (index / options_.threads == favourite_) favoured = index;
    runnable_.push_back(index);
  }
  if (runnable_.empty()) return -1;
  if (favoured >= 0 && random_.chance(75)) return favoured;
  int chosen = runnable_[static_cast<std::size_t>(random_.below(static_cast<int>(runnable_.size())))];
  for (int tries = 0; tries < 3 && chosen / options_.threads == victim_; ++tries)
    chosen = runnable_[static_cast<std::size_t>(random_.below(static_cast<int>(runnable_.size())))];
  return chosen;
}

bool FiberScheduler::run() {
  while (left_ > 0) {
    current_ = pick();
    if (current_ < 0 || (hurry_ && ++looks_ > looks_before_abort * left_)) {
      if (!unblock()) return false;
      continue;
    }
    if (hurry_ && memory_.version() != hurry_version_) hurry_ = false;
    Thread& t = threads_[static_cast<std::size_t>(current_)];
    t.state = State::ready;
    t.fiber->resume();
    if (t.fiber->ended()) {
      t.state = State::ended;
      --left_;
    }
    if (random_.chance(10)) memory_.drain_some();
  }
  memory_.drain();
  return true;
}

/// Nobody can go on. False: nothing helps.
bool FiberScheduler::unblock() {
  const std::uint64_t before = memory_.version();
  memory_.drain();
  if (memory_.version() != before) return true;
  if (!hurry_) {  // time passes, and all look again
    hurry_ = true;
    hurry_version_ = before;
    looks_ = 0;
    bool some = false;
    for (const Thread& t : threads_) some = some || t.state == State::paused;
    if (some) return true;
  }
  if (++deadlocks_ == 2) return false;
  looks_ = 0;
  options_.on_deadlock();
  return true;
}

void FiberScheduler::leave(State state) {
  Thread& t = threads_[static_cast<std::size_t>(current_)];
  t.state = state;
  t.seen = memory_.version();
  t.fiber->suspend();
}

void FiberScheduler::pause() {
  leave(State::paused);
}

void FiberScheduler::switch_() {
  if (random_.chance(40)) leave(State::ready);
}

bool FiberScheduler::barrier(int block, bool vote) {
  Team& team = teams_[static_cast<std::size_t>(block)];
  team.vote = team.vote || vote;
  if (++team.arrived < options_.threads) {
    leave(State::at_barrier);
    return team.outcome;
  }
  team.arrived = 0;
  team.outcome = team.vote;
  team.vote = false;
  memory_.barrier(block);
  const bool outcome = team.outcome;
  for (int thread = 0; thread < options_.threads; ++thread) {
    Thread& t = threads_[static_cast<std::size_t>(block * options_.threads + thread)];
    if (t.state == State::at_barrier) t.state = State::ready;
  }
  if (random_.chance(50)) leave(State::ready);
  return outcome;
}

}  // namespace tutti::testing
