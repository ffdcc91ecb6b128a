#include "progress/drive.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/uncancelled.h"
#include "comm/communicator.h"
#include "comm/peer_failure.h"
#include "progress/access_lease.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tutti {
namespace {

constexpr unsigned rounds_per_us = 40;   // pauses per microsecond, about
constexpr unsigned patient_rounds = 64;  // rounds before settings are read, which takes time
constexpr unsigned yield_rounds = 2'000;
// Of a start, where a rank may be measuring the machine on the very core that this one would be given again and again.
constexpr std::int64_t yields_of_start_ns = 1'000'000;
constexpr std::int64_t look_every_ns = 1'000'000;
constexpr std::int64_t poll_timeout_ns = 10'000'000;
constexpr unsigned rounds_per_meanwhile = 512;  // while spinning: every 10 us or so, which no small call waits
constexpr unsigned yields_per_meanwhile = 8;
constexpr std::int64_t meanwhile_poll_timeout_ns = 100'000;
constexpr std::int64_t shared_poll_timeout_ns = 1'000'000;  // several operations, but the thread sleeps on one doorbell

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

/// Advances all operations that are not done. True if any made progress or ended.
bool advance_all(std::span<Operation*> operations, std::optional<Error>& first) {
  bool moved = false;
  for (auto*& operation : operations) {
    if (operation == nullptr) continue;
    auto progress = operation->advance();
    if (progress && *progress == Progress::blocked) continue;
    moved = true;
    if (!progress || *progress == Progress::done) operation = nullptr;
    if (!progress && !first) first = std::move(progress).error();
  }
  return moved;
}

/// Limits are from milliseconds to hours.
std::string seconds_text(std::int64_t ns) {
  const double seconds = static_cast<double>(ns) * 1e-9;
  return seconds < 1 ? fmt::format("{:.2g} s", seconds) : fmt::format("{:.1f} s", seconds);
}

WhileWaiting first_meanwhile(std::span<Operation* const> operations) {
  for (auto* operation : operations) {
    const auto* communicator = operation->communicator();
    const WhileWaiting meanwhile =
        communicator != nullptr ? communicator->members().while_waiting : operation->while_waiting();
    if (meanwhile) return meanwhile;
  }
  return {};
}

}  // namespace

Result<void> drive(Process& process, std::span<Operation* const> operations, Thread thread) {
  std::vector<Operation*> active(operations.begin(), operations.end());
  std::optional<Error> first;
  Waiter waiter(process, active, thread == Thread::program ? first_meanwhile(active) : WhileWaiting{});
  while (std::ranges::any_of(active, [](const Operation* o) { return o != nullptr; })) {
    if (advance_all(active, first)) {
      waiter.reset();
      continue;
    }
    // The error has failed a communicator already; its operation ends at the next advance.
    if (auto paused = waiter.pause(); !paused && !first) first = std::move(paused).error();
  }
  if (!first) return {};
  const Uncancelled to_the_end;
  for (auto* operation : operations)
    if (auto* communicator = operation->communicator(); communicator != nullptr && communicator->failed()) {
      communicator->failure().mark_reported();
      take_back_buffers(*communicator, operation->leased());
    }
  return *std::move(first);
}

Waiter::Waiter(Process& process, std::span<Operation* const> operations, WhileWaiting meanwhile)
    : process_(process), operations_(operations), meanwhile_(meanwhile) {
  for (auto* operation : operations)
    if (operation != nullptr) {
      const auto* communicator = operation->communicator();
      starting_ = starting_ || communicator == nullptr;
      crowded_ = crowded_ || (communicator != nullptr && communicator->members().oversubscribed);
    }
}

Result<void> Waiter::pause() {
  ++rounds_;
  if (rounds_ == 1) since_ns_ = 0;
  if (rounds_ == patient_rounds) {
    spin_rounds_ = static_cast<unsigned>(process_.config.integer("TUTTI_SPIN_US")) * rounds_per_us;
    (void)passed_ns();
  }
  if (!crowded_ && rounds_ < std::max(spin_rounds_, patient_rounds)) {
    relax();
    if (rounds_ % rounds_per_meanwhile != 0) return {};
    run_meanwhile();
    return look();
  }
  if (since_ns_ == 0) (void)passed_ns();
  if (yields()) {
    if (rounds_ % yields_per_meanwhile == 0) run_meanwhile();
    process_.system.yield();
    return look();
  }
  TUTTI_TRY(look());
  run_meanwhile();
  sleep();
  return look();
}

/// How long this wait has lasted. The first call begins to count: a short wait reads no clock.
std::int64_t Waiter::passed_ns() {
  const std::int64_t now = process_.system.now_ns();
  if (since_ns_ == 0) since_ns_ = looked_ns_ = now;
  return now - since_ns_;
}

/// Carries on what goes on beside the calls: a peer may wait for it. True while there is some.
bool Waiter::run_background() {
  bool any = false;
  for (auto* operation : operations_) {
    auto* const communicator = operation == nullptr ? nullptr : operation->communicator();
    Background* const background = communicator == nullptr ? nullptr : communicator->beside_calls().background();
    if (background == nullptr || !background->active()) continue;
    const Uncancelled whole;
    background->progress();
    any = true;
  }
  return any;
}

void Waiter::run_meanwhile() {
  run_background();
  if (!meanwhile_) return;
  const Uncancelled whole;
  meanwhile_();
}

bool Waiter::yields() {
  if (rounds_ >= spin_rounds_ + yield_rounds) return false;
  if (!starting_) return true;
  const std::int64_t now = process_.system.now_ns();
  if (yielding_since_ns_ == 0) yielding_since_ns_ = now;
  return now - yielding_since_ns_ < yields_of_start_ns;
}

/// To be called after each yield and sleep, which may have taken long: what came after the limit is too late, although
/// it may be there by now.
Result<void> Waiter::look() {
  const std::int64_t now = passed_ns() + since_ns_;
  if (now - looked_ns_ < look_every_ns) return {};
  const Uncancelled whole;
  if (looked_ns_ == since_ns_)
    next_report_ns_ = since_ns_ + process_.config.integer("TUTTI_STALL_REPORT_MS") * 1'000'000;
  looked_ns_ = now;
  for (auto* operation : operations_) {
    if (operation == nullptr) continue;
    if (auto* const communicator = operation->communicator()) say_wait(*communicator, *operation, now);
    TUTTI_TRY(operation->poll_peers());
  }
  if (now >= next_report_ns_) report_stall(now - since_ns_);
  return check_limit(now);
}

void Waiter::say_wait(Communicator& communicator, const Operation& operation, std::int64_t now) {
  if (std::ranges::find(told_, &communicator) == told_.end()) {
    told_.push_back(&communicator);
    communicator.waits().begin();
  }
  communicator.waits().note(now, operation.waits_for());
}

void Waiter::say_moved() {
  for (Communicator* const communicator : told_) communicator->waits().end();
  told_.clear();
}

Result<void> Waiter::check_limit(std::int64_t now) {
  for (auto* operation : operations_) {
    if (operation == nullptr || operation->communicator() == nullptr) continue;
    const CallLimit limit = operation->limit().value_or(operation->communicator()->waits().limit());
    if (limit.ms == 0 || now - since_ns_ < limit.ms * 1'000'000) continue;
    const Holdup holdup = held_up_by(*operation->communicator(), operation->waits_for());
    Error late{.code = Code::timeout,
               .what = fmt::format("no progress for {} ({}) in {}{}", seconds_text(now - since_ns_), limit.from,
                                   operation->where(), holdup.words),
               .peer = holdup.rank};
    // A rank whose own limit has just ended waits no more, and has named the culprit while it did.
    if (auto told = failure_of_any(*operation->communicator()); told && told->code == Code::timeout)
      late = *std::move(told);
    operation->communicator()->fail(late);
    return late;
  }
  return {};
}

void Waiter::report_stall(std::int64_t waited_ns) {
  next_report_ns_ += std::max<std::int64_t>(waited_ns, 1'000'000'000);
  for (auto* operation : operations_) {
    auto* const communicator = operation == nullptr ? nullptr : operation->communicator();
    if (communicator == nullptr) continue;
    process_.log.warn(communicator->members().who, "{:.1f} s in {}{}", static_cast<double>(waited_ns) * 1e-9,
                      operation->where(), held_up_by(*communicator, operation->waits_for()).words);
  }
}

/// Marks the doorbell as asleep on the first call, and sleeps on the second, after another round of advances. So that
/// round sees everything published before the mark, and anything published later rings the doorbell.
void Waiter::sleep() {
  const Uncancelled whole;
  const bool beside = run_background();
  std::vector<PollItem> items;
  Communicator* last = nullptr;
  int active = 0;
  std::int64_t until = process_.system.now_ns() + (meanwhile_ || beside ? meanwhile_poll_timeout_ns : poll_timeout_ns);
  for (auto* operation : operations_) {
    if (operation == nullptr) continue;
    ++active;
    if (const std::int64_t next = operation->poll_set(items); next != 0) until = std::min(until, next);
    if (operation->communicator() != nullptr) last = operation->communicator();
  }
  // A socket does not wake a thread that sleeps on a doorbell, nor a doorbell one that polls. Operations with sockets
  // limit the sleep, so that both are looked at often enough.
  if (last == nullptr || !items.empty()) {
    process_.system.poll(items, std::max<std::int64_t>(0, until - process_.system.now_ns()));
    return;
  }
  if (armed_ == nullptr) {
    armed_ = &last->links().doorbell();
    armed_->mark_asleep();
    return;
  }
  const std::int64_t longest = active == 1 ? poll_timeout_ns : shared_poll_timeout_ns;
  process_.system.wait(armed_->asleep, 1, std::clamp(until - process_.system.now_ns(), std::int64_t{0}, longest));
  disarm();
}

void Waiter::disarm() {
  armed_->asleep.store(0, std::memory_order_relaxed);
  armed_ = nullptr;
}

}  // namespace tutti
